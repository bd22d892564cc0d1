#include "runner/task_seal.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace stanchion::runner {
namespace {

// The secret signs other things, too: calls of SQS.
constexpr std::string_view kPurpose = "stanchion work: periodic tasks";

// Each part with its size before it, so that no two lists of parts give one text.
std::string signed_text(std::string_view queue, std::string_view task, std::string_view time) {
  std::string text;
  for (const std::string_view part : {queue, task, time})
    text += fmt::format("{}:{}", part.size(), part);
  return text;
}

std::string signature_by(const Sha256& key, const std::string& text) {
  return to_hex(as_text(hmac_sha256(as_text(key), text)));
}

}  // namespace

Result<TaskSeal> TaskSeal::of_lines(std::string_view text) {
  TaskSeal seal;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (line.size() < kCronKeySizeMin)
      return fail(fmt::format("a key has {} characters, and must have {} at least", line.size(),
                              kCronKeySizeMin));
    seal.add_key(line);
  }
  if (seal.keys_.empty()) return fail("holds no key. Make one: head -c 32 /dev/urandom | base64");
  return seal;
}

Result<TaskSeal> TaskSeal::of_credentials(const client::Credentials& credentials) {
  if (!credentials.session_token.empty() || credentials.expires)
    return fail(
        "the credentials are temporary, so that workers could not know the periodic tasks of each "
        "other. Give all of them the same --cron-key FILE, with a line as "
        "`head -c 32 /dev/urandom | base64` prints it");
  TaskSeal seal;
  seal.add_key(credentials.secret_access_key);
  seal.is_open_ = credentials.secret_access_key.empty();
  return seal;
}

void TaskSeal::add_key(std::string_view secret) {
  keys_.push_back(hmac_sha256(secret, kPurpose));
}

std::string TaskSeal::sign(std::string_view queue, std::string_view task,
                           std::string_view time) const {
  return signature_by(keys_.front(), signed_text(queue, task, time));
}

bool TaskSeal::is_signed(std::string_view queue, std::string_view task, std::string_view time,
                         std::string_view signature) const {
  const std::string text = signed_text(queue, task, time);
  return std::ranges::any_of(keys_, [&](const Sha256& key) {
    return equal_in_constant_time(signature_by(key, text), signature);
  });
}

bool was_sent_too_late(const std::string& time, const std::string& sent_millis) {
  const auto sent = parse_decimal(sent_millis);
  if (!sent) return false;  // Not every server tells it.
  const auto due = parse_iso_time(time);
  if (!due) return true;  // No worker writes such a time.
  const std::chrono::sys_time<std::chrono::milliseconds> at{
      std::chrono::milliseconds(static_cast<std::int64_t>(*sent))};
  return at > *due + kSentWithin;
}

const PeriodicTask* SealedTasks::find(std::string_view name) const {
  const auto found = std::ranges::find(tasks, name, &PeriodicTask::name);
  return found == tasks.end() ? nullptr : &*found;
}

}  // namespace stanchion::runner
