#include "model/batch.h"

#include "base/bytes.h"

namespace stanchion {

std::string Series::pack() const {
  constexpr std::size_t kNumbersSize = 5;  // An upper bound for the varints of an entry.
  std::string out;
  out.reserve(1 + value_bytes + entries.size() * kNumbersSize);
  out.push_back(kPackMark);
  ByteWriter writer(out);
  std::uint64_t number = entries.front().number;
  std::uint32_t head = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    fetch_ahead(i);
    const Entry& entry = entries[i];
    writer.varint(entry.number - number);
    writer.text(std::string_view(heads).substr(head, entry.head_end - head));
    writer.text(entry.content == nullptr ? std::string_view() : entry.content->encoded());
    number = entry.number;
    head = entry.head_end;
  }
  return out;
}

}  // namespace stanchion
