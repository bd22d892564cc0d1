#include "client/retry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "client/json.h"
#include "wire/http_call.h"

namespace stanchion::client {

// The content of an error's answer.
struct ErrorBody {
  std::optional<std::string> type;
  std::optional<std::string> message;
  std::optional<std::string> capital_message;
};

template <>
struct Members<ErrorBody> {
  using T = ErrorBody;
  static constexpr auto list =
      std::tuple(member("__type", &T::type), member("message", &T::message),
                 member("Message", &T::capital_message));
};

namespace {

// The part of an answer that is not SQS's, such as a proxy's page, that an error quotes.
constexpr std::size_t kShownMax = 200;

constexpr std::array<std::string_view, 9> kThrottlingCodes{"RequestThrottled",
                                                           "ThrottlingException",
                                                           "Throttling",
                                                           "ThrottledException",
                                                           "RequestThrottledException",
                                                           "TooManyRequestsException",
                                                           "RequestLimitExceeded",
                                                           "SlowDown",
                                                           "KmsThrottled"};

constexpr std::array<std::string_view, 6> kCredentialCodes{
    "ExpiredToken",         "ExpiredTokenException",
    "InvalidClientTokenId", "UnrecognizedClientException",
    "InvalidAccessKeyId",   "TokenRefreshRequired"};

constexpr int kTooManyRequests = 429;

// "com.amazonaws.sqs#QueueDoesNotExist" and "QueueDoesNotExist:http://…" are QueueDoesNotExist.
std::string_view code_of(std::string_view type) {
  type = type.substr(0, type.find(':'));
  const std::size_t hash = type.rfind('#');
  return hash == std::string_view::npos ? type : type.substr(hash + 1);
}

// These may come from a server, or a proxy before it, that had begun to execute the request.
bool is_ambiguous(int status) {
  return status >= 500 && status != 501 && status != 503;
}

std::string shown(std::string_view body) {
  std::string text(body.substr(0, kShownMax));
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c >= 0x7F; }, ' ');
  return text;
}

}  // namespace

std::string Error::to_string() const {
  std::string text = code;
  if (http_status != 0 && !request_id.empty()) {
    text += fmt::format(" (HTTP {}, request {})", http_status, request_id);
  } else if (http_status != 0) {
    text += fmt::format(" (HTTP {})", http_status);
  }
  if (!message.empty()) text += ": " + message;
  if (may_have_happened) text += " (it may have been done all the same)";
  return text;
}

Error error_of(const net::ClientResponse& response) {
  Error error;
  error.http_status = response.status;
  if (const std::string* id = response.header(wire::kRequestIdHeader)) error.request_id = *id;
  error.fault = response.status >= 500 ? Fault::kReceiver : Fault::kSender;
  error.may_have_happened = is_ambiguous(response.status);
  auto body = ResultJson::read<ErrorBody>(response.body);
  if (body && body->type && !code_of(*body->type).empty()) {
    error.code = code_of(*body->type);
    if (body->message) error.message = *std::move(body->message);
    if (body->capital_message) error.message = *std::move(body->capital_message);
  } else {
    error.code = code::kBadAnswer;
    error.message = fmt::format("the answer is not one of SQS: {}", shown(response.body));
  }
  error.throttled = response.status == kTooManyRequests ||
                    std::ranges::find(kThrottlingCodes, error.code) != kThrottlingCodes.end();
  return error;
}

Error error_of(const Failure& failure, bool sent) {
  const char* const what = !sent                           ? code::kConnectionFailed
                           : failure.os_error == ETIMEDOUT ? code::kTimeout
                                                           : code::kConnectionLost;
  return {.code = what,
          .message = failure.message,
          .fault = Fault::kNetwork,
          .may_have_happened = sent};
}

Error local_error(const char* code, std::string message) {
  return {.code = code, .message = std::move(message), .fault = Fault::kLocal};
}

bool refuses_credentials(const Error& error) {
  return std::ranges::find(kCredentialCodes, error.code) != kCredentialCodes.end();
}

bool may_repeat(const Error& error, Repetition repetition, const RetryOptions& options) {
  const bool passing = error.throttled || error.fault == Fault::kNetwork ||
                       (error.http_status >= 500 && error.http_status != 501);
  if (!passing) return false;
  return !error.may_have_happened || repetition == Repetition::kHarmless ||
         options.repeat_ambiguous_sends;
}

std::chrono::milliseconds delay_before_next(const Error& error, int attempts, double random,
                                            const RetryOptions& options) {
  const auto base = error.throttled ? options.throttled_delay_base : options.delay_base;
  // Beyond this many doublings, every base exceeds every sensible maximum.
  constexpr int kDoublingsMax = 30;
  const int doublings = std::clamp(attempts - 1, 0, kDoublingsMax);
  const double longest = std::min(static_cast<double>(base.count()) * (1LL << doublings),
                                  static_cast<double>(options.delay_max.count()));
  return std::chrono::milliseconds(static_cast<std::int64_t>(longest * random));
}

}  // namespace stanchion::client
