#include "journal/end_note.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/text.h"
#include "journal/format.h"

namespace stanchion::journal {
namespace {

constexpr std::size_t kNoteSize = 80;
constexpr std::string_view kWhatToDo =
    ". Nothing was changed. Restore the file from a copy of this directory, or the whole directory "
    "from a backup; 'stanchion inspect' shows what is readable.";

std::string checksum_of(std::string_view text) {
  const std::uint64_t sum = xxh3_64(text);
  return to_hex({reinterpret_cast<const char*>(&sum), sizeof sum});
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t space = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, space));
    line.remove_prefix(std::min(space + 1, line.size()));
  }
  return words;
}

std::optional<EndNote> parse(std::string_view text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::vector<std::string_view> words = words_of(text.substr(0, end));
  if (words.size() < 3) return std::nullopt;
  const std::size_t checked = end - words.back().size();
  if (checksum_of(text.substr(0, checked)) != words.back()) return std::nullopt;
  const auto last = parse_decimal(words[1]);
  if (!last) return std::nullopt;
  // Without a size, as earlier releases wrote it.
  if (words[0] == "running" && words.size() == 3) return EndNote{.last_segment = Position(*last)};
  const auto number = parse_decimal(words[2]);
  if (words.size() != 4 || !number) return std::nullopt;
  if (words[0] == "running") return EndNote{.last_segment = Position(*last), .size = *number};
  if (words[0] != "stopped") return std::nullopt;
  return EndNote{.last_segment = Position(*last), .next = Position(*number)};
}

}  // namespace

Result<std::optional<EndNote>> read_end_note(os::Directory& directory) {
  auto file = directory.open_file(kEndNoteName, os::OpenMode::kReadOnly);
  if (!file) {
    if (file.error().os_error == ENOENT) return std::optional<EndNote>();
    return std::unexpected(std::move(file).error());
  }
  std::string text(kNoteSize, '\0');
  auto size = (*file)->read_at(0, text);
  if (!size) return std::unexpected(std::move(size).error());
  text.resize(*size);
  return parse(text);
}

Status write_end_note(os::Directory& directory, const EndNote& note) {
  std::string text = note.next ? "stopped " : "running ";
  text += std::to_string(note.last_segment.value()) + " ";
  if (note.next) {
    text += std::to_string(note.next->value()) + " ";
  } else if (note.size > 0) {
    text += std::to_string(note.size) + " ";
  }
  text += checksum_of(text) + "\n";
  text.resize(kNoteSize, ' ');
  auto file = directory.open_file(kEndNoteName, os::OpenMode::kReadWrite);
  if (!file && file.error().os_error == ENOENT)
    file = directory.open_file(kEndNoteName, os::OpenMode::kCreateNew);
  if (!file) return std::unexpected(std::move(file).error());
  RETURN_IF_FAILED((*file)->write_at(0, text));
  return (*file)->sync_data();
}

std::string contradiction(const std::string& path, const EndNote& note, const FoundEnd& found) {
  const std::string noted = path + "/" + segment_name(note.last_segment);
  if (found.last_segment < note.last_segment)
    return "journal segment " + noted +
           " is missing: it was there when the server ran last, and with it went every record from "
           "position " +
           std::to_string(note.last_segment.value()) + " on" + std::string(kWhatToDo);
  if (!note.next) {
    if (found.last_segment != note.last_segment || found.size >= note.size) return "";
    return "journal segment " + noted + " was cut: it has " + std::to_string(found.size) +
           " bytes, and had " + std::to_string(note.size) +
           " when the server ran last. The records before position " +
           std::to_string(found.next.value()) + " are readable; whatever came behind them is gone" +
           std::string(kWhatToDo);
  }
  // A segment without records may have been started after the noted one: nothing is missing.
  const bool same_segment =
      found.last_segment == note.last_segment || found.last_segment == *note.next;
  if (same_segment && found.next == *note.next && !found.torn) return "";
  const std::string last =
      found.last_segment == Position() ? path : path + "/" + segment_name(found.last_segment);
  return "the journal ends in " + last + (found.torn ? " with a torn write" : "") +
         " before position " + std::to_string(found.next.value()) +
         ", but when the server last ran it ended in " + noted + " before position " +
         std::to_string(note.next->value()) +
         ": since then the file was cut, overwritten or exchanged" + std::string(kWhatToDo);
}

}  // namespace stanchion::journal
