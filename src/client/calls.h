// The typed side of a call: what is added to a request before it is written, and what is checked in
// a result before it is returned.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/checksums.h"
#include "client/core.h"
#include "client/json.h"
#include "client/retry.h"
#include "client/types.h"
#include "model/limits.h"

namespace stanchion::client {

inline bool is_fifo(const std::string& queue_url) {
  return queue_url.ends_with(".fifo");
}

// Fills in what the caller may leave out.
template <class Request>
void complete_request(Request& request, os::Entropy& entropy) {
  if constexpr (requires { request.entries.front().id; }) {
    for (std::size_t i = 0; i < request.entries.size(); ++i)
      if (request.entries[i].id.empty()) request.entries[i].id = std::to_string(i);
  }
  if constexpr (std::is_same_v<Request, ReceiveMessageRequest>) {
    // A receive that chooses its messages has no attempt id.
    if (!request.receive_request_attempt_id && request.stanchion_positions.empty() &&
        is_fifo(request.queue_url))
      request.receive_request_attempt_id =
          fmt::format("{:016x}{:016x}", entropy.u64(), entropy.u64());
  }
}

template <class Request>
Repetition repetition_of(const Request& request) {
  const auto doubles = [](const auto& message) { return !message.message_deduplication_id; };
  bool any = false;
  if constexpr (std::is_same_v<Request, SendMessageRequest>) any = doubles(request);
  if constexpr (std::is_same_v<Request, SendMessageBatchRequest>)
    any = std::ranges::any_of(request.entries, doubles);
  return any ? Repetition::kDoubles : Repetition::kHarmless;
}

// A receive without a wait time of its own may wait as long as the queue's setting says.
template <class Request>
std::chrono::milliseconds timeout_of(const Request& request, const Options& options) {
  if constexpr (std::is_same_v<Request, ReceiveMessageRequest>) {
    const auto wait =
        std::clamp<std::int64_t>(request.wait_time_seconds.value_or(limits::kWaitTimeSecondsMax), 0,
                                 limits::kWaitTimeSecondsMax);
    return options.request_timeout + std::chrono::seconds(wait);
  }
  return options.request_timeout;
}

// Which requests are kept until their result arrives, so that the two can be compared.
template <class Request>
inline constexpr bool kIsSend =
    std::is_same_v<Request, SendMessageRequest> || std::is_same_v<Request, SendMessageBatchRequest>;

inline Error checksum_error(const char* what) {
  return {.code = code::kChecksumMismatch,
          .message = fmt::format("{} is not that of what was sent", what),
          .http_status = 200,
          .fault = Fault::kNetwork,
          .may_have_happened = true};
}

inline std::optional<Error> check_sent(const SendMessageRequest& request,
                                       SendMessageResult& result) {
  if (const char* what = find_mismatch(request, result)) return checksum_error(what);
  return std::nullopt;
}

// An entry that arrived damaged counts as failed.
inline std::optional<Error> check_sent(const SendMessageBatchRequest& request,
                                       SendMessageBatchResult& result) {
  std::erase_if(result.successful, [&](const SendMessageBatchResultEntry& answer) {
    const auto sent =
        std::ranges::find(request.entries, answer.id, &SendMessageBatchRequestEntry::id);
    if (sent == request.entries.end()) return false;
    const char* what = find_mismatch(*sent, answer);
    if (what == nullptr) return false;
    result.failed.push_back(
        {answer.id, code::kChecksumMismatch, checksum_error(what).message, false});
    return true;
  });
  return std::nullopt;
}

inline void set_damaged_aside(ReceiveMessageResult& result) {
  const auto damaged = std::ranges::stable_partition(result.messages, is_intact);
  result.damaged.assign(std::make_move_iterator(damaged.begin()),
                        std::make_move_iterator(damaged.end()));
  result.messages.erase(damaged.begin(), damaged.end());
}

// Parses the result of an answer. `sent` is null for requests that are not kept.
template <class Request>
Outcome<typename Request::Result> result_of(Outcome<std::string> answer, const Request* sent,
                                            bool verify_md5) {
  if (!answer) return {answer.error(), answer.info()};
  using Answered = typename Request::Result;
  const std::string_view text = answer->empty() ? std::string_view("{}") : *answer;
  auto result = ResultJson::read<Answered>(text);
  const auto failed = [&](Error error) {
    error.request_id = answer.info().request_id;
    return Outcome<Answered>(std::move(error), answer.info());
  };
  if (!result)
    return failed({.code = code::kBadAnswer,
                   .message = "the answer cannot be read: " + result.error().message,
                   .http_status = 200,
                   .fault = Fault::kReceiver,
                   .may_have_happened = true});
  if (verify_md5) {
    if constexpr (kIsSend<Request>) {
      if (auto error = check_sent(*sent, *result)) return failed(*std::move(error));
    }
    if constexpr (std::is_same_v<Request, ReceiveMessageRequest>) set_damaged_aside(*result);
  }
  return {*std::move(result), answer.info()};
}

// Makes the call. `done` runs on the core's thread.
template <class Request, class Done>
Core::Id start_call(Core& core, Request request, Done done) {
  os::SystemEntropy entropy;
  complete_request(request, entropy);
  auto body = RequestJson::write(request);
  if (!body) {
    core.post([done = std::move(done),
               error = local_error(code::kInvalidRequest, body.error().message)]() mutable {
      done(Outcome<typename Request::Result>(std::move(error)));
    });
    return 0;
  }
  Order order{.action = ActionOf<Request>::value,
              .body = *std::move(body),
              .repetition = repetition_of(request),
              .timeout = timeout_of(request, core.options())};
  const bool verify = core.options().verify_md5;
  if constexpr (kIsSend<Request>) {
    return core.call(std::move(order), [sent = std::move(request), verify, done = std::move(done)](
                                           Outcome<std::string> answer) mutable {
      done(result_of<Request>(std::move(answer), &sent, verify));
    });
  } else {
    return core.call(std::move(order),
                     [verify, done = std::move(done)](Outcome<std::string> answer) mutable {
                       done(result_of<Request>(std::move(answer), nullptr, verify));
                     });
  }
}

// Where the caller wants its completion to run.
template <class Result>
void complete(const Executor& executor, std::function<void(Outcome<Result>)> done,
              Outcome<Result> outcome) {
  if (!executor) return done(std::move(outcome));
  executor([done = std::move(done), outcome = std::move(outcome)]() mutable {
    done(std::move(outcome));
  });
}

}  // namespace stanchion::client
