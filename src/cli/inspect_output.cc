#include "cli/inspect_output.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>

#include "base/text.h"
#include "base/time_text.h"
#include "os/timekeeper.h"

namespace stanchion::cli {
namespace {

namespace json = boost::json;

std::string_view name_of_state(engine::State state) {
  switch (state) {
    case engine::State::kDelayed:
      return "delayed";
    case engine::State::kReady:
      return "ready";
    case engine::State::kInFlight:
      return "in flight";
  }
  return "?";
}

class TextOutput final : public InspectOutput {
 public:
  void begin(std::string_view data, std::uint32_t shard_count, std::string_view fleet) override {
    fmt::print("{}: {} shard{}\n", data, shard_count, shard_count == 1 ? "" : "s");
    if (!fleet.empty())
      fmt::print(
          "of the fleet {}, whose journals are in Kafka: the state at this node's last "
          "checkpoints follows\n",
          fleet);
  }
  void begin_shard(ShardIndex shard) override { fmt::print("shard {}\n", shard.value()); }
  void problem(std::string_view text) override { fmt::print("  DAMAGED: {}\n", text); }
  void store(const StoreSize& size) override {
    fmt::print("  store: {} files, {} bytes, {} entries\n", size.files, size.bytes, size.entries);
  }
  void fact(Position position, Instant at, std::string_view text) override {
    fmt::print("  {} {} {}\n", position.value(), format_instant(at), text);
  }
  void gave_up(std::string_view why) override { fmt::print("  {}\n", why); }
  void again() override { fmt::print("  the server made a checkpoint meanwhile; again:\n"); }
  void segment(const journal::SegmentReport& segment) override {
    fmt::print("  {}: records {} to {}, {} commits, {} of {} bytes used\n", segment.name,
               segment.first.value(), segment.next.value() - 1, segment.frames, segment.used,
               segment.file_size);
    if (!segment.problem.empty())
      fmt::print("    DAMAGED at offset {}: {}\n", segment.problem_offset, segment.problem);
  }
  void records(std::uint64_t records, std::size_t queues, bool whole) override {
    if (!whole) fmt::print("  the state up to the first damaged record follows\n");
    fmt::print("  {} records, {} queues\n", records, queues);
  }
  void last_record(Instant at, Duration ahead) override {
    fmt::print("  last record of {}", format_instant(at));
    if (ahead >= os::Timekeeper::kNewsworthy)
      fmt::print(", {} ahead of this machine's clock: time continues from there",
                 format_span(ahead));
    fmt::print("\n");
  }
  void holdings(const engine::Holdings& h) override {
    fmt::print(
        "  {} messages on disk only; {} in memory ({} bytes), of which {} are pinned (delayed, in "
        "flight or returned); {} leaving; {} lanes, {} chunks, {} deduplication ids\n",
        h.cold, h.in_memory, h.bytes, h.records, h.leaving, h.lanes, h.chunks, h.deduplication_ids);
  }
  void queue(const engine::Queue& queue) override {
    const engine::Counts& counts = queue.counts();
    const auto oldest = queue.oldest_entered();
    fmt::print("  queue {} ({}): {} visible, {} in flight, {} delayed{}\n", queue.ref.name,
               queue.fifo() ? "FIFO" : "standard", counts.visible, counts.in_flight, counts.delayed,
               oldest ? ", oldest from " + format_instant(*oldest) : "");
  }
  void message(Seq seq, const Content& content, std::uint32_t receive_count,
               engine::State state) override {
    fmt::print("    {} {} {} bytes, sent {}, received {} times, {}\n", seq.value(),
               content.id().text(), content.body().size(), format_instant(content.sent()),
               receive_count, name_of_state(state));
  }
  void end_shard(bool) override {}
  void end(bool sound) override {
    fmt::print("{}\n", sound ? "everything is readable" : "there is damage, see above");
  }
};

// Queues and messages, of which there may be millions, are written as they come; the other fields
// of a shard are kept and follow them.
class JsonOutput final : public InspectOutput {
 public:
  JsonOutput(bool facts, bool messages) : facts_(facts), messages_(messages) {}

  void begin(std::string_view data, std::uint32_t shard_count, std::string_view fleet) override {
    fmt::print("{{\"data\":{},\"fleet\":{},\"shard_count\":{},\"shards\":[", text_of(data),
               fleet.empty() ? "null" : text_of(fleet), shard_count);
  }

  void begin_shard(ShardIndex shard) override {
    shard_ = {{"problems", json::array()}, {"store", nullptr},       {"segments", json::array()},
              {"records", nullptr},        {"last_record", nullptr}, {"holdings", nullptr}};
    if (facts_) shard_["facts"] = json::array();
    index_ = shard.value();
    begun_ = false;
    in_queue_ = false;
  }

  void problem(std::string_view text) override { append("problems", json::string(to_utf8(text))); }

  void store(const StoreSize& size) override {
    shard_["store"] = {{"files", size.files}, {"bytes", size.bytes}, {"entries", size.entries}};
  }

  void fact(Position position, Instant at, std::string_view text) override {
    append("facts",
           {{"record", position.value()}, {"at", format_instant(at)}, {"fact", to_utf8(text)}});
  }

  void gave_up(std::string_view why) override { problem(why); }
  void again() override { begin_shard(ShardIndex(index_)); }

  void segment(const journal::SegmentReport& segment) override {
    json::value problem;
    if (!segment.problem.empty())
      problem = {{"offset", segment.problem_offset}, {"text", to_utf8(segment.problem)}};
    append("segments", {{"name", to_utf8(segment.name)},
                        {"first_record", segment.first.value()},
                        {"records", segment.next.value() - segment.first.value()},
                        {"commits", segment.frames},
                        {"used_bytes", segment.used},
                        {"file_bytes", segment.file_size},
                        {"torn_bytes", segment.torn_bytes},
                        {"problem", std::move(problem)}});
  }

  void records(std::uint64_t records, std::size_t, bool) override { shard_["records"] = records; }

  void last_record(Instant at, Duration ahead) override {
    shard_["last_record"] = {{"at", format_instant(at)},
                             {"ahead_seconds", std::chrono::duration<double>(ahead).count()}};
  }

  void holdings(const engine::Holdings& h) override {
    shard_["holdings"] = {{"in_store_only", h.cold},    {"in_memory", h.in_memory},
                          {"in_memory_bytes", h.bytes}, {"always_in_memory", h.records},
                          {"leaving", h.leaving},       {"lanes", h.lanes},
                          {"chunks", h.chunks},         {"deduplication_ids", h.deduplication_ids}};
  }

  void queue(const engine::Queue& queue) override {
    end_queue();
    begin_queues();
    const engine::Counts& counts = queue.counts();
    const auto oldest = queue.oldest_entered();
    fmt::print(
        "{}{{\"name\":{},\"account\":{},\"region\":{},\"fifo\":{},\"visible\":{},"
        "\"in_flight\":{},\"delayed\":{},\"oldest\":{}",
        any_queue_ ? "," : "", text_of(queue.ref.name), text_of(queue.ref.account),
        text_of(queue.ref.region), queue.fifo(), counts.visible, counts.in_flight, counts.delayed,
        oldest ? text_of(format_instant(*oldest)) : "null");
    if (messages_) fmt::print(",\"messages\":[");
    any_queue_ = in_queue_ = true;
    any_message_ = false;
  }

  void message(Seq seq, const Content& content, std::uint32_t receive_count,
               engine::State state) override {
    fmt::print(
        "{}{{\"sequence\":{},\"id\":{},\"bytes\":{},\"sent\":{},\"received\":{},\"state\":{}}}",
        any_message_ ? "," : "", seq.value(), text_of(content.id().text()), content.body().size(),
        text_of(format_instant(content.sent())), receive_count, text_of(name_of_state(state)));
    any_message_ = true;
  }

  void end_shard(bool sound) override {
    end_queue();
    begin_queues();
    shard_["sound"] = sound;
    // Without its opening brace it continues where the queues end.
    fmt::print("],{}", json::serialize(shard_).substr(1));
  }

  void end(bool sound) override { fmt::print("],\"sound\":{}}}\n", sound); }

 private:
  static std::string text_of(std::string_view text) {
    return json::serialize(json::string(to_utf8(text)));
  }
  void append(std::string_view list, json::value value) {
    shard_[list].as_array().push_back(std::move(value));
  }
  void begin_queues() {
    if (begun_) return;
    fmt::print("{}{{\"shard\":{},\"queues\":[", any_shard_ ? "," : "", index_);
    any_shard_ = begun_ = true;
    any_queue_ = false;
  }
  void end_queue() {
    if (in_queue_) fmt::print("{}", messages_ ? "]}" : "}");
    in_queue_ = false;
  }

  const bool facts_;
  const bool messages_;
  json::object shard_;
  std::uint32_t index_ = 0;
  bool begun_ = false;  // The beginning of the shard is written.
  bool in_queue_ = false;
  bool any_shard_ = false;
  bool any_queue_ = false;
  bool any_message_ = false;
};

}  // namespace

std::string to_utf8(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string out;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x80) {
      out.push_back(c);
    } else {
      out += "\uFFFD";
    }
  }
  return out;
}

std::unique_ptr<InspectOutput> inspect_as_text() {
  return std::make_unique<TextOutput>();
}

std::unique_ptr<InspectOutput> inspect_as_json(bool facts, bool messages) {
  return std::make_unique<JsonOutput>(facts, messages);
}

}  // namespace stanchion::cli
