#include "cli/inspect_log_output.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "base/time_text.h"
#include "cli/control_text.h"
#include "cli/inspect_output.h"
#include "fleet/control_codec.h"
#include "journal/log_entry.h"
#include "model/fact.h"

namespace stanchion::cli {
namespace {

namespace json = boost::json;
using fleet_admin::InspectedEntry;
using fleet_admin::LogFinding;
using journal::LogEntryKind;

std::string_view name_of(LogEntryKind kind) {
  switch (kind) {
    case LogEntryKind::kRecords:
      return "facts";
    case LogEntryKind::kClaim:
      return "claim";
    case LogEntryKind::kBarrier:
      return "barrier";
  }
  return "?";
}

std::string_view name_of(LogFinding finding) {
  switch (finding) {
    case LogFinding::kValid:
      return "valid";
    case LogFinding::kVoid:
      return "void";
    case LogFinding::kDuplicate:
      return "duplicate";
    case LogFinding::kDamaged:
      return "damaged";
  }
  return "?";
}

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

struct FactLine {
  Position record;
  std::string at;
  std::string text;
};

// The entry's facts; of a record that cannot be read, why.
std::vector<FactLine> facts_of(const InspectedEntry& found) {
  std::vector<FactLine> lines;
  if (!found.entry) return lines;
  const Status visited = journal::visit_records(
      *found.entry, [&](Position position, std::string_view bytes) -> Status {
        const auto record = parse_record(bytes);
        if (!record) {
          lines.push_back({position, "", "DAMAGED: " + record.error().message});
          return {};
        }
        for (const Fact& fact : record->facts)
          lines.push_back({position, format_instant(record->at), describe(fact)});
        return {};
      });
  static_cast<void>(visited);  // The visitor does not fail.
  return lines;
}

std::string text_of(const fleet_admin::InspectedControl& found) {
  if (!found.problem.empty()) return "DAMAGED: " + found.problem;
  return found.record ? describe(*found.record)
                      : "a record of a kind that this release does not know";
}

class TextOutput final : public InspectLogOutput {
 public:
  explicit TextOutput(bool facts) : facts_(facts) {}

  void begin(std::string_view, const kafka::Partition& partition,
             const fleet_admin::LogRange& range) override {
    if (range.first >= range.end) return fmt::print("{}: empty\n", partition.text());
    fmt::print("{}: offsets {} to {}\n", partition.text(), range.first.value(),
               range.end.value() - 1);
  }

  void entry(const InspectedEntry& found, std::string_view node) override {
    fmt::print("  {} {} ", found.offset.value(), format_instant(found.at));
    if (found.entry) {
      const journal::LogEntry& head = found.entry->head;
      fmt::print("{}, epoch {}, {}", name_of(head.kind), head.epoch.value(), node);
      if (head.kind == LogEntryKind::kRecords)
        fmt::print(", records {} to {}", head.first.value(), head.first.value() + head.count - 1);
    } else {
      fmt::print("{} bytes", found.size);
    }
    fmt::print(": {}{}\n",
               found.finding == LogFinding::kDamaged ? "DAMAGED" : name_of(found.finding),
               found.why.empty() ? "" : ": " + found.why);
    if (!facts_) return;
    for (const FactLine& line : facts_of(found))
      fmt::print("    {} {}{}{}\n", line.record.value(), line.at, line.at.empty() ? "" : " ",
                 line.text);
  }

  void end(const fleet_admin::LogSummary& summary, std::string_view claimed_by,
           bool complete) override {
    fmt::print("{} valid ({} with {}, {}, {}), {} void, {} duplicate", summary.valid,
               summary.valid - summary.claims - summary.barriers,
               counted(summary.records, "record"), counted(summary.claims, "claim"),
               counted(summary.barriers, "barrier"), summary.voids, summary.duplicates);
    if (summary.damaged > 0) fmt::print(", {} DAMAGED", summary.damaged);
    fmt::print("\n");
    if (summary.first_record)
      fmt::print("records {} to {}\n", summary.first_record->value(), summary.last_record.value());
    if (summary.last_claim)
      fmt::print("last claim: epoch {} by {}, at offset {}, {}\n",
                 summary.last_claim->epoch.value(), claimed_by, summary.last_claim->offset.value(),
                 format_instant(summary.last_claim->at));
    else
      fmt::print("the rest of the log has no claim\n");
    if (summary.damaged > 0)
      fmt::print("there is damage, see above: nodes stop at the first damaged entry\n");
    if (!complete) fmt::print("this is not all\n");
  }

  void control(const fleet_admin::InspectedControl& found) override {
    fmt::print("  {} {} {}\n", found.offset.value(), format_instant(found.at), text_of(found));
  }
  void end_control(std::uint64_t records, std::uint64_t damaged, bool complete) override {
    fmt::print("{}", counted(records, "record"));
    if (damaged > 0) fmt::print(", {} DAMAGED", damaged);
    fmt::print("\n{}", complete ? "" : "this is not all\n");
  }

 private:
  const bool facts_;
};

// Entries are written as they come; there may be millions.
class JsonOutput final : public InspectLogOutput {
 public:
  explicit JsonOutput(bool facts) : facts_(facts) {}

  void begin(std::string_view fleet, const kafka::Partition& partition,
             const fleet_admin::LogRange& range) override {
    fmt::print(
        "{{\"fleet\":{},\"topic\":{},\"partition\":{},\"first_offset\":{},\"end_offset\":{},"
        "\"entries\":[",
        json::serialize(json::string(fleet)), json::serialize(json::string(partition.topic)),
        partition.number, range.first.value(), range.end.value());
  }

  void entry(const InspectedEntry& found, std::string_view node) override {
    json::object out{{"offset", found.offset.value()},
                     {"at", format_instant(found.at)},
                     {"bytes", found.size},
                     {"finding", name_of(found.finding)}};
    if (!found.why.empty()) out["why"] = found.why;
    if (found.entry) {
      const journal::LogEntry& head = found.entry->head;
      out["kind"] = name_of(head.kind);
      out["epoch"] = head.epoch.value();
      out["node"] = node;
      if (head.kind == LogEntryKind::kRecords) {
        out["first_record"] = head.first.value();
        out["records"] = head.count;
      }
    }
    if (facts_) {
      json::array facts;
      for (const FactLine& line : facts_of(found))
        facts.push_back(
            {{"record", line.record.value()}, {"at", line.at}, {"fact", to_utf8(line.text)}});
      out["facts"] = std::move(facts);
    }
    item(out);
  }

  void end(const fleet_admin::LogSummary& summary, std::string_view claimed_by,
           bool complete) override {
    json::object out{{"valid", summary.valid},
                     {"claims", summary.claims},
                     {"barriers", summary.barriers},
                     {"void", summary.voids},
                     {"duplicates", summary.duplicates},
                     {"damaged", summary.damaged},
                     {"records", summary.records},
                     {"first_record", nullptr},
                     {"last_claim", nullptr},
                     {"complete", complete},
                     {"sound", complete && summary.damaged == 0}};
    if (summary.first_record) out["first_record"] = summary.first_record->value();
    if (summary.last_claim)
      out["last_claim"] = {{"offset", summary.last_claim->offset.value()},
                           {"epoch", summary.last_claim->epoch.value()},
                           {"node", claimed_by},
                           {"at", format_instant(summary.last_claim->at)}};
    finish(out);
  }

  void control(const fleet_admin::InspectedControl& found) override {
    json::object out{{"offset", found.offset.value()},
                     {"at", format_instant(found.at)},
                     {"finding", found.problem.empty() ? "valid" : "damaged"},
                     {"text", to_utf8(text_of(found))}};
    if (found.record) out["key"] = fleet::control_key(*found.record);
    item(out);
  }
  void end_control(std::uint64_t records, std::uint64_t damaged, bool complete) override {
    finish({{"valid", records},
            {"damaged", damaged},
            {"complete", complete},
            {"sound", complete && damaged == 0}});
  }

 private:
  void item(const json::object& out) {
    fmt::print("{}{}", any_ ? "," : "", json::serialize(out));
    any_ = true;
  }
  // Without its opening brace the rest continues where the entries end.
  void finish(const json::object& out) { fmt::print("],{}\n", json::serialize(out).substr(1)); }

  const bool facts_;
  bool any_ = false;
};

}  // namespace

std::unique_ptr<InspectLogOutput> inspect_log_as_text(bool facts) {
  return std::make_unique<TextOutput>(facts);
}

std::unique_ptr<InspectLogOutput> inspect_log_as_json(bool facts) {
  return std::make_unique<JsonOutput>(facts);
}

}  // namespace stanchion::cli
