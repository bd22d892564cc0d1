#include "broker/shard_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "engine/store/store_keys.h"
#include "journal/segment_log.h"

namespace stanchion::broker {
namespace {

// What is wrong with a journal that a survey does not call usable, or that does not continue the
// checkpoint.
std::string problem_of(const std::string& path, const journal::Survey& survey,
                       const ShardReplay& replay) {
  for (const journal::SegmentReport& segment : survey.segments)
    if (segment.ending == journal::Ending::kDamaged)
      return journal::damage_message(path + "/" + segment.name, segment.problem_offset,
                                     segment.problem);
  if (!survey.problems.empty()) return survey.problems.front();
  return replay.gap(path, survey);
}

}  // namespace

engine::Engine::ScanStore scan_of(const store::Store& store) {
  return [&store](const KeyRange& range, const auto& visit) { return store.scan(range, visit); };
}

Status ShardReplay::load() {
  if (store_ == nullptr) return {};
  const auto position = engine_.load(scan_of(*store_), now_);
  if (!position) return std::unexpected(position.error());
  checkpoint_ = applied_ = *position;
  return {};
}

Status ShardReplay::take(Position position, std::string_view bytes) {
  const auto record = parse_record(bytes);
  if (!record) return fail(fmt::format("record {}: {}", position.value(), record.error().message));
  if (facts_)
    for (const Fact& fact : record->facts) facts_(position, record->at, fact);
  ++records_;
  if (position != applied_.next()) return {};
  applied_ = position;
  now_ = std::max(now_, record->at);
  engine_.advance(now_);
  if (store_ != nullptr) {
    if (engine_.exceeds(kReplayMemory)) engine_.evict_some(kReplayMemory);
    RETURN_IF_FAILED(engine_.prepare_for(record->facts, scan_of(*store_), now_));
  }
  for (const Fact& fact : record->facts) engine_.apply(fact, now_);
  return {};
}

std::string ShardReplay::gap(const std::string& path, const journal::Survey& survey) const {
  return journal::missing_positions(path, survey.first(), survey.next(), checkpoint_.next());
}

Result<std::unique_ptr<const store::RocksStore>> open_shard_store(const DataDirectory& data,
                                                                  ShardIndex shard) {
  const std::string path = data.store_path(shard);
  const auto has_store = store::has_store(path);
  if (!has_store) return std::unexpected(has_store.error());
  if (!*has_store) return nullptr;
  return store::RocksStore::open_read_only(path, data.store_identity(shard));
}

Result<std::optional<Checkpoint>> last_checkpoint(const DataDirectory& data, ShardIndex shard) {
  const auto store = open_shard_store(data, shard);
  if (!store) return std::unexpected(store.error());
  if (!*store) return std::nullopt;
  const auto record = (*store)->get(engine::shard_key().view());
  if (!record) return std::unexpected(record.error());
  if (!*record) return std::nullopt;
  ByteReader reader(**record);
  reader.u8();  // The version; see docs/formats.md.
  const Position position(reader.u64());
  return Checkpoint{position, from_millis(reader.i64())};
}

Status check_start(const DataDirectory& data, ShardIndex shard) {
  const auto directory = data.shard_directory(shard);
  if (!directory) return std::unexpected(directory.error());
  const auto store = open_shard_store(data, shard);
  if (!store) return std::unexpected(store.error());
  ShardReplay replay(shard, store->get());
  RETURN_IF_FAILED(replay.load());
  if (!data.fleet().empty()) return {};  // Its journal is in Kafka.
  const auto survey = journal::survey(
      **directory, [&](Position position, auto bytes) { return replay.take(position, bytes); },
      data.shard_of(shard));
  if (!survey) return std::unexpected(survey.error());
  const std::string problem = problem_of((*directory)->path(), *survey, replay);
  return problem.empty() ? Status() : fail(problem);
}

Status check_shard(const DataDirectory& data, ShardIndex shard) {
  const std::string path = data.store_path(shard);
  const auto has_store = store::has_store(path);
  if (!has_store) return std::unexpected(has_store.error());
  if (*has_store) {
    const auto files = store::survey(path);
    if (!files) return std::unexpected(files.error());
    for (const store::FileReport& file : *files)
      if (!file.problem.empty()) return fail(fmt::format("{}: {}", file.path, file.problem));
  }
  return check_start(data, shard);
}

bool may_pass(const Failure& failure) {
  constexpr std::array kOfTheMachine{EMFILE, ENFILE, ENOMEM, EACCES, EPERM, ENOSPC, EDQUOT};
  return std::ranges::find(kOfTheMachine, failure.os_error) != kOfTheMachine.end();
}

}  // namespace stanchion::broker
