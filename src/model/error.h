// The table of all errors: what a client can do wrong, and what a server can answer instead of a
// result.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

// X(name in this program, JSON type, code of the Query protocol, HTTP status)
#define STANCHION_ERRORS(X)                                                                         \
  X(QueueDoesNotExist, "com.amazonaws.sqs#QueueDoesNotExist",                                       \
    "AWS.SimpleQueueService.NonExistentQueue", 400)                                                 \
  X(QueueNameExists, "com.amazonaws.sqs#QueueNameExists", "QueueAlreadyExists", 400)                \
  X(QueueDeletedRecently, "com.amazonaws.sqs#QueueDeletedRecently",                                 \
    "AWS.SimpleQueueService.QueueDeletedRecently", 400)                                             \
  X(PurgeQueueInProgress, "com.amazonaws.sqs#PurgeQueueInProgress",                                 \
    "AWS.SimpleQueueService.PurgeQueueInProgress", 403)                                             \
  X(ReceiptHandleIsInvalid, "com.amazonaws.sqs#ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid",   \
    404)                                                                                            \
  X(InvalidMessageContents, "com.amazonaws.sqs#InvalidMessageContents", "InvalidMessageContents",   \
    400)                                                                                            \
  X(InvalidAttributeName, "com.amazonaws.sqs#InvalidAttributeName", "InvalidAttributeName", 400)    \
  X(InvalidAttributeValue, "com.amazonaws.sqs#InvalidAttributeValue", "InvalidAttributeValue",      \
    400)                                                                                            \
  X(OverLimit, "com.amazonaws.sqs#OverLimit", "OverLimit", 403)                                     \
  X(RequestThrottled, "com.amazonaws.sqs#RequestThrottled", "RequestThrottled", 403)                \
  X(UnsupportedOperation, "com.amazonaws.sqs#UnsupportedOperation",                                 \
    "AWS.SimpleQueueService.UnsupportedOperation", 400)                                             \
  X(ResourceNotFound, "com.amazonaws.sqs#ResourceNotFoundException", "ResourceNotFoundException",   \
    404)                                                                                            \
  X(InvalidAddress, "com.amazonaws.sqs#InvalidAddress", "InvalidAddress", 404)                      \
  X(InvalidSecurity, "com.amazonaws.sqs#InvalidSecurity", "InvalidSecurity", 403)                   \
  X(TooManyEntriesInBatchRequest, "com.amazonaws.sqs#TooManyEntriesInBatchRequest",                 \
    "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", 400)                                     \
  X(EmptyBatchRequest, "com.amazonaws.sqs#EmptyBatchRequest",                                       \
    "AWS.SimpleQueueService.EmptyBatchRequest", 400)                                                \
  X(BatchEntryIdsNotDistinct, "com.amazonaws.sqs#BatchEntryIdsNotDistinct",                         \
    "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", 400)                                         \
  X(BatchRequestTooLong, "com.amazonaws.sqs#BatchRequestTooLong",                                   \
    "AWS.SimpleQueueService.BatchRequestTooLong", 400)                                              \
  X(InvalidBatchEntryId, "com.amazonaws.sqs#InvalidBatchEntryId",                                   \
    "AWS.SimpleQueueService.InvalidBatchEntryId", 400)                                              \
  X(InvalidParameterValue, "com.amazon.coral.service#InvalidParameterValueException",               \
    "InvalidParameterValue", 400)                                                                   \
  X(MissingParameter, "com.amazon.coral.service#MissingRequiredParameterException",                 \
    "MissingParameter", 400)                                                                        \
  X(MalformedInput, "com.amazon.coral.service#SerializationException", "MalformedInput", 400)       \
  X(InvalidParameterCombination, "com.amazonaws.cloudwatch#InvalidParameterCombinationException",   \
    "InvalidParameterCombination", 400)                                                             \
  X(InvalidNextToken, "com.amazonaws.cloudwatch#InvalidNextToken", "InvalidNextToken", 400)         \
  X(ValidationError, "com.amazon.coral.service#ValidationError", "ValidationError", 400)            \
  X(AccessDenied, "com.amazon.coral.service#AccessDeniedException", "AccessDenied", 403)            \
  X(InvalidAction, "com.amazon.coral.service#UnknownOperationException", "InvalidAction", 400)      \
  X(MissingAuthenticationToken, "com.amazon.coral.service#MissingAuthenticationTokenException",     \
    "MissingAuthenticationToken", 403)                                                              \
  X(IncompleteSignature, "com.amazon.coral.service#IncompleteSignatureException",                   \
    "IncompleteSignature", 400)                                                                     \
  X(InvalidClientTokenId, "com.amazon.coral.service#UnrecognizedClientException",                   \
    "InvalidClientTokenId", 403)                                                                    \
  X(SignatureDoesNotMatch, "com.amazon.coral.service#InvalidSignatureException",                    \
    "SignatureDoesNotMatch", 403)                                                                   \
  X(ExpiredToken, "com.amazon.coral.service#ExpiredTokenException", "ExpiredToken", 403)            \
  X(RequestEntityTooLarge, "com.amazon.coral.service#RequestEntityTooLargeException",               \
    "RequestEntityTooLarge", 413)                                                                   \
  X(InternalFailure, "com.amazon.coral.service#InternalFailure", "InternalError", 500)              \
  X(ServiceUnavailable, "com.amazon.coral.service#ServiceUnavailableException",                     \
    "ServiceUnavailable", 503)                                                                      \
  /* Between the nodes of a fleet only: the request was not executed, and may be made elsewhere. */ \
  X(ShardHasMoved, "com.amazon.coral.service#ServiceUnavailableException", "ServiceUnavailable",    \
    503)

namespace stanchion {

enum class ErrorCode {
#define STANCHION_ERROR_ENUMERATOR(name, type, query_code, status) k##name,
  STANCHION_ERRORS(STANCHION_ERROR_ENUMERATOR)
#undef STANCHION_ERROR_ENUMERATOR
};

inline constexpr std::size_t kErrorCount = 0
#define STANCHION_ERROR_COUNTED(name, type, query_code, status) +1
    STANCHION_ERRORS(STANCHION_ERROR_COUNTED)
#undef STANCHION_ERROR_COUNTED
    ;

struct ErrorInfo {
  std::string_view json_type;   // The value of __type.
  std::string_view query_code;  // <Code> in XML, first half of x-amzn-query-error in JSON.
  int http_status;

  bool sender_fault() const { return http_status < 500; }
};

const ErrorInfo& info_of(ErrorCode code);

struct Error {
  ErrorCode code;
  std::string message;

  friend bool operator==(const Error&, const Error&) = default;
};

// A value, or the error that the client gets.
template <class T>
using Answer = std::expected<T, Error>;

inline std::unexpected<Error> refuse(ErrorCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

}  // namespace stanchion
