#include "backup/backup.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "backup/data_copy.h"
#include "broker/data_directory.h"
#include "broker/shard_replay.h"
#include "net/http_client.h"
#include "os/real_directory.h"

namespace stanchion::backup {
namespace {

namespace json = boost::json;

// The server sends nothing until everything is copied.
constexpr std::chrono::hours kBackupTimeMax(24);

// The error in the server's answer, or the whole answer.
std::string reason(const net::ClientResponse& reply) {
  json::error_code error;
  const json::value value = json::parse(reply.body, error);
  if (!error && value.is_object())
    if (const json::value* text = value.as_object().if_contains("message"); text != nullptr)
      if (text->is_string()) return std::string(text->as_string());
  return fmt::format("the server answered with status {}", reply.status);
}

Status ask_server(const std::string& data, const std::string& to, const Failure& in_use) {
  const auto url = net::parse_url("unix:" + control_socket(data));
  if (!url) return std::unexpected(url.error());
  net::Url target = *url;
  target.path = "/backup";
  net::HttpClient client({.request_timeout = kBackupTimeMax});
  const auto reply = client.call({.method = "POST",
                                  .url = target,
                                  .headers = {{"Content-Type", "application/json"}},
                                  .body = json::serialize(json::object{{"to", to}}),
                                  .keep_alive = false});
  if (!reply)
    return fail(fmt::format("{}, and it cannot be asked for a backup: {}: {}", in_use.message,
                            control_socket(data), reply.error().message));
  if (reply->status != 200) return fail(reason(*reply));
  return {};
}

Status check_all(const broker::DataDirectory& data) {
  for (std::uint32_t i = 0; i < data.shard_count(); ++i) {
    if (!data.fleet().empty() && !data.shard_directory(ShardIndex(i))) continue;  // It lacks it.
    const Status sound = broker::check_shard(data, ShardIndex(i));
    if (sound) continue;
    if (broker::may_pass(sound.error())) return std::unexpected(sound.error());
    if (!data.fleet().empty())
      return fail(
          fmt::format("shard {} is damaged. Back up another node; with --no-check the directory "
                      "is copied as it is, and fleet rebuild leaves out what cannot be read. The "
                      "damage: {}",
                      i, sound.error().message));
    return fail(fmt::format(
        "shard {} is damaged. Try stanchion repair --dry-run; with --no-check the directory is "
        "copied as it is. The damage: {}",
        i, sound.error().message));
  }
  return {};
}

Status copy_shards(const broker::DataDirectory& data, const std::string& root, Check check,
                   DataCopy& copy) {
  for (std::uint32_t i = 0; i < data.shard_count(); ++i) {
    const std::string path = fmt::format("{}/{}", root, broker::shard_name(ShardIndex(i)));
    const auto there = os::exists(path);
    if (!there) return std::unexpected(there.error());
    if ((check == Check::kNot || !data.fleet().empty()) && !*there) continue;
    RETURN_IF_FAILED(copy.add_shard(ShardIndex(i), path));
  }
  return {};
}

Status copy_all(os::Directory& root, const std::string& to, Check check) {
  const auto data = broker::DataDirectory::look_at(root);
  if (!data) return std::unexpected(data.error());
  RETURN_IF_FAILED(DataCopy::check_target(root.path(), to));
  if (check == Check::kFirst) RETURN_IF_FAILED(check_all(*data));
  auto copy = DataCopy::create(root.path(), to, [] { return Status(); });
  if (!copy) return std::unexpected(std::move(copy).error());
  Status status = copy_shards(*data, root.path(), check, *copy);
  if (status) status = copy->finish(root);
  if (!status) copy->discard();
  return status;
}

// What the copy of a node's directory has.
Result<Copied> describe(const std::string& path, bool checked) {
  auto root = os::open_existing_directory(path);
  if (!root) return std::unexpected(std::move(root).error());
  const auto data = broker::DataDirectory::look_at(**root);
  if (!data) return std::unexpected(data.error());
  Copied copied{.checked = checked,
                .fleet = data->fleet(),
                .shards = data->shard_count(),
                .missing = {},
                .oldest = Instant::max()};
  for (std::uint32_t i = 0; i < data->shard_count(); ++i) {
    const auto found = broker::last_checkpoint(*data, ShardIndex(i));
    if (!found) return std::unexpected(found.error());
    if (!*found) copied.missing.emplace_back(i);
    if (*found) copied.oldest = std::min(copied.oldest, (*found)->at);
  }
  return copied;
}

Result<Copied> made(const std::string& path, const std::string& fleet, Check check) {
  const bool checked = check == Check::kFirst;
  if (fleet.empty() || !checked)
    return Copied{.checked = checked, .fleet = fleet, .shards = 0, .missing = {}, .oldest = {}};
  auto copied = describe(path, checked);
  if (!copied)
    return fail(fmt::format("the backup {} was made, but cannot be read: {}", path,
                            copied.error().message));
  return copied;
}

}  // namespace

std::string control_socket(const std::string& data) {
  return fmt::format("{}/{}", data, broker::kControlSocketName);
}

Result<Copied> back_up(const std::string& data, const std::string& to, Check check) {
  std::error_code error;
  const std::string target = std::filesystem::absolute(to, error).lexically_normal().string();
  if (error) return fail(fmt::format("{}: {}", to, error.message()), error.value());
  auto root = os::open_existing_directory(data);
  if (!root) return std::unexpected(std::move(root).error());
  // Checked before taking the lock, which would create a file in a directory that is not ours.
  const auto found = broker::DataDirectory::look_at(**root);
  if (!found)
    return fail(
        fmt::format("{} is not a data directory of Stanchion: {}", data, found.error().message));
  const auto lock = (*root)->lock();
  if (lock) {
    RETURN_IF_FAILED(copy_all(**root, target, check));
    return made(target, found->fleet(), check);
  }
  if (lock.error().os_error != EBUSY) return std::unexpected(lock.error());
  RETURN_IF_FAILED(ask_server(data, target, lock.error()));
  return made(target, found->fleet(), Check::kFirst);
}

}  // namespace stanchion::backup
