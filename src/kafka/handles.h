// librdkafka's objects, each destroyed once. This header and the sources of this layer are the only
// places that include librdkafka.
#pragma once

#include <librdkafka/rdkafka.h>

#include <memory>
#include <string>

#include "base/result.h"

namespace stanchion::kafka {

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* object) const {
    destroy(object);
  }
};

using Client = std::unique_ptr<rd_kafka_t, Destroy<rd_kafka_destroy>>;
using Topic = std::unique_ptr<rd_kafka_topic_t, Destroy<rd_kafka_topic_destroy>>;
using Queue = std::unique_ptr<rd_kafka_queue_t, Destroy<rd_kafka_queue_destroy>>;
using Event = std::unique_ptr<rd_kafka_event_t, Destroy<rd_kafka_event_destroy>>;
using Message = std::unique_ptr<rd_kafka_message_t, Destroy<rd_kafka_message_destroy>>;
using AdminOptions =
    std::unique_ptr<rd_kafka_AdminOptions_t, Destroy<rd_kafka_AdminOptions_destroy>>;

inline std::string text_of(rd_kafka_resp_err_t error) {
  return rd_kafka_err2str(error);
}

// A reason may come as a null pointer.
inline std::string text_or_empty(const char* text) {
  return text == nullptr ? "" : text;
}

}  // namespace stanchion::kafka
