#include "kafka/client_errors.h"

namespace stanchion::kafka {

bool is_lost_count(rd_kafka_resp_err_t fatal) {
  switch (fatal) {
    case RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER:
    case RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID:
    case RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH:
    case RD_KAFKA_RESP_ERR__INCONSISTENT:
      return true;
    default:
      return false;
  }
}

bool is_refusal(rd_kafka_resp_err_t fatal) {
  return fatal == RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE;
}

bool is_brokers_fault(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_UNKNOWN || error == RD_KAFKA_RESP_ERR_INVALID_MSG;
}

bool AnewLimit::may_begin_anew(Instant now) {
  while (!begun_.empty() && now - begun_.front() >= kPeriod) begun_.pop_front();
  if (begun_.size() >= kMax) return false;
  begun_.push_back(now);
  return true;
}

}  // namespace stanchion::kafka
