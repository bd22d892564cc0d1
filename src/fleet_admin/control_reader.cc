#include "fleet_admin/control_reader.h"

#include <fmt/format.h>

#include "fleet/control_codec.h"
#include "fleet_admin/topics.h"

namespace stanchion::fleet_admin {

using Clock = std::chrono::steady_clock;
using Got = kafka::PartitionReader::Got;

Result<std::unique_ptr<ControlReader>> ControlReader::open(kafka::KafkaConnection& connection,
                                                           const std::string& fleet) {
  std::unique_ptr<ControlReader> reader(new ControlReader(connection, control_partition(fleet)));
  RETURN_IF_FAILED(reader->begin());
  return reader;
}

Status ControlReader::begin() {
  reader_.reset();
  caught_up_ = false;  // What comes was true once; nobody acts upon the half of it.
  auto opened = connection_.read(partition_, std::nullopt);
  if (!opened) return std::unexpected(opened.error());
  reader_ = std::move(*opened);
  if (ready_) reader_->when_ready(ready_);
  return {};
}

Result<std::optional<ControlReader::Entry>> ControlReader::next(std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  for (auto wait = timeout;; wait = std::max(std::chrono::milliseconds(0),
                                             std::chrono::duration_cast<std::chrono::milliseconds>(
                                                 deadline - Clock::now()))) {
    const auto got = reader_->next(wait);
    if (!got) return std::unexpected(got.error());
    switch (*got) {
      case Got::kNothing:
        return std::nullopt;
      case Got::kEnd:
        caught_up_ = true;
        continue;
      case Got::kTrimmed:
        // Reading some records twice does no harm: what they say is what is known.
        RETURN_IF_FAILED(begin());
        continue;
      case Got::kEntry:
        break;
    }
    auto record = take(reader_->bytes());
    if (!record) return std::unexpected(record.error());
    if (*record) return Entry{*std::move(*record), from_millis(reader_->timestamp_millis())};
  }
}

Result<std::optional<fleet::ControlRecord>> ControlReader::take(std::string_view bytes) {
  // What only has a key removes the records that have it.
  if (bytes.empty()) return std::nullopt;
  auto record = fleet::decode_control(bytes);
  if (record || fleet::is_of_later_format(bytes)) return record;
  // Many of them are as good as one.
  if (!std::exchange(warned_, true))
    connection_.settings().warn(fmt::format("{}, offset {}: {}; it is ignored", partition_.text(),
                                            reader_->offset().value(), record.error().message));
  return std::nullopt;
}

void ControlReader::when_ready(std::function<void()> ready) {
  ready_ = std::move(ready);
  reader_->when_ready(ready_);
}

}  // namespace stanchion::fleet_admin
