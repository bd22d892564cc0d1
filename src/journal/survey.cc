#include "journal/survey.h"

#include <algorithm>
#include <utility>

namespace stanchion::journal {
namespace {

Result<SegmentReport> survey_segment(os::Directory& directory, const std::string& name,
                                     Position first, bool last, const RecordVisitor& visit) {
  SegmentReport report;
  report.name = name;
  report.first = report.next = first;
  auto file = directory.open_file(name, os::OpenMode::kReadOnly);
  if (!file) return std::unexpected(std::move(file).error());
  auto reader = SegmentReader::open(**file);
  if (!reader) return std::unexpected(std::move(reader).error());
  report.file_size = reader->file_size();

  auto opening = open_segment(*reader, name, last);
  if (!opening) return std::unexpected(std::move(opening).error());
  report.header = opening->header;
  if (!opening->problem.empty()) {
    report.ending = Ending::kDamaged;
    report.problem = opening->problem;
    return report;
  }
  if (!report.header) return report;

  auto scan = scan_segment(*reader, *report.header, last, visit);
  if (!scan) return std::unexpected(std::move(scan).error());
  report.next = scan->next;
  report.frames = scan->frames;
  report.used = scan->end;
  report.ending = scan->ending;
  report.problem = scan->problem;
  if (scan->ending == Ending::kDamaged) report.problem_offset = scan->end;
  if (scan->ending == Ending::kTorn) report.torn_bytes = report.file_size - scan->end;
  return report;
}

// What is wrong between two neighbouring segments that are both readable.
void compare(const SegmentReport& older, const SegmentReport& newer,
             std::vector<std::string>& problems) {
  if (older.ending == Ending::kDamaged) return;
  if (older.next != newer.first)
    problems.push_back(older.name + " ends before position " + std::to_string(older.next.value()) +
                       ", but " + newer.name + " begins at position " +
                       std::to_string(newer.first.value()));
  if (older.header && newer.header &&
      (older.header->shard != newer.header->shard ||
       older.header->shard_count != newer.header->shard_count))
    problems.push_back(older.name + " and " + newer.name + " belong to different shards");
}

FoundEnd end_of(const Survey& survey) {
  if (survey.segments.empty()) return {};
  const SegmentReport& last = survey.segments.back();
  return {.last_segment = last.first,
          .next = last.next,
          .torn = last.ending == Ending::kTorn && last.frames > 0,
          .size = last.file_size};
}

// What the note says against the journal; empty if nothing. A server that runs writes the note
// before the segments differ from it, so a note that has changed meanwhile says nothing.
Result<std::string> contradiction_of(os::Directory& directory, const EndNote& note,
                                     const Survey& survey) {
  std::string problem = contradiction(directory.path(), note, end_of(survey));
  if (problem.empty()) return problem;
  const auto now = read_end_note(directory);
  if (!now) return std::unexpected(now.error());
  return *now == note ? problem : "";
}

}  // namespace

bool Survey::usable() const {
  return problems.empty() && std::ranges::none_of(segments, [](const SegmentReport& segment) {
           return segment.ending == Ending::kDamaged;
         });
}

Result<Survey> survey(os::Directory& directory, const RecordVisitor& visit,
                      const std::optional<ShardOf>& shard) {
  // Read before the list of names: a running server may add a segment and note it.
  const auto note = read_end_note(directory);
  if (!note) return std::unexpected(note.error());
  auto names = directory.list();
  if (!names) return std::unexpected(std::move(names).error());
  Survey result;
  result.has_reserve = std::ranges::find(*names, "reserve") != names->end();
  std::erase_if(*names, [](const std::string& name) { return !parse_segment_name(name); });
  for (const std::string& name : *names) {
    const Position first = *parse_segment_name(name);
    // Records after damage or a gap do not follow from those visited, so they are verified, not
    // shown.
    const bool follows =
        result.usable() && (result.segments.empty() || result.segments.back().next == first);
    auto report = survey_segment(directory, name, first, name == names->back(),
                                 follows ? visit : RecordVisitor());
    if (!report) return std::unexpected(std::move(report).error());
    if (shard && report->header && report->problem.empty()) {
      report->problem = foreignness(*report->header, *shard);
      if (!report->problem.empty()) report->ending = Ending::kDamaged;
    }
    if (!result.segments.empty()) compare(result.segments.back(), *report, result.problems);
    result.segments.push_back(std::move(*report));
  }
  // The end is known only as far as the journal is readable.
  if (*note && result.usable()) {
    auto problem = contradiction_of(directory, **note, result);
    if (!problem) return std::unexpected(std::move(problem).error());
    if (!problem->empty()) result.problems.push_back(std::move(*problem));
  }
  return result;
}

}  // namespace stanchion::journal
