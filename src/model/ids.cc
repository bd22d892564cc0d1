#include "model/ids.h"

#include <fmt/format.h>

#include <vector>

#include "base/check.h"

namespace stanchion {
namespace {

// Splits arn:partition:service:region:account:resource; the resource keeps any further colons.
std::vector<std::string_view> split_arn(std::string_view arn) {
  std::vector<std::string_view> parts;
  while (parts.size() < 5) {
    const std::size_t colon = arn.find(':');
    if (colon == std::string_view::npos) return {};
    parts.push_back(arn.substr(0, colon));
    arn.remove_prefix(colon + 1);
  }
  parts.push_back(arn);
  if (parts.front() != "arn" || parts.back().empty()) return {};
  return parts;
}

std::string_view partition_of(std::string_view region) {
  if (region.starts_with("cn-")) return "aws-cn";
  if (region.starts_with("us-gov-")) return "aws-us-gov";
  return "aws";
}

}  // namespace

std::string QueueRef::arn() const {
  return fmt::format("arn:{}:sqs:{}:{}:{}", partition_of(region), region, account, name);
}

std::optional<QueueRef> parse_queue_arn(std::string_view arn) {
  const auto parts = split_arn(arn);
  if (parts.empty() || parts[2] != "sqs") return std::nullopt;
  if (parts[1].empty() || parts[3].empty() || parts[4].empty()) return std::nullopt;
  return QueueRef{std::string(parts[4]), std::string(parts[3]), std::string(parts[5])};
}

bool looks_like_arn(std::string_view arn) {
  return !split_arn(arn).empty();
}

std::string format_sequence_number(Seq seq) {
  std::string out = "18800000000000000000";
  std::uint64_t left = seq.value();
  CHECK(left < 100'000'000'000'000'000, "queues do not live that long");
  for (std::size_t at = out.size(); left > 0; left /= 10)
    out[--at] = static_cast<char>('0' + left % 10);
  return out;
}

}  // namespace stanchion
