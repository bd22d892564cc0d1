#include "model/content.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/bytes.h"
#include "base/check.h"
#include "model/dates.h"

namespace stanchion {
namespace {

constexpr std::uint8_t kContentVersion = 1;
constexpr std::uint8_t kVersionWithLastReceive = 2;

// The fixed head of the block; see content.h for the drawing.
constexpr std::size_t kGroupSizeAt = 1;
constexpr std::size_t kDeduplicationSizeAt = 2;
constexpr std::size_t kSenderSizeAt = 3;
constexpr std::size_t kTraceSizeAt = 4;
constexpr std::size_t kSourceSizeAt = 8;
constexpr std::size_t kAttributesSizeAt = 12;
constexpr std::size_t kBodySizeAt = 16;
constexpr std::size_t kSentAt = 20;
constexpr std::size_t kIdAt = 28;
constexpr std::size_t kMd5At = 44;
constexpr std::size_t kHeadSize = 60;
constexpr std::size_t kLastReceivedSize = 8;

template <class T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void store(char* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

std::size_t byte_at(const char* bytes, std::size_t offset) {
  return static_cast<std::uint8_t>(bytes[offset]);
}

std::size_t u32_at(const char* bytes, std::size_t offset) {
  return load<std::uint32_t>(bytes + offset);
}

bool has_last_receive(const char* bytes) {
  return byte_at(bytes, 0) == kVersionWithLastReceive;
}

// Where each variable part begins; `end` is the size of the whole block.
struct Offsets {
  explicit Offsets(const char* b)
      : group(kHeadSize),
        deduplication(group + byte_at(b, kGroupSizeAt)),
        sender(deduplication + byte_at(b, kDeduplicationSizeAt)),
        trace(sender + byte_at(b, kSenderSizeAt)),
        source(trace + u32_at(b, kTraceSizeAt)),
        attributes(source + u32_at(b, kSourceSizeAt)),
        body(attributes + u32_at(b, kAttributesSizeAt)),
        last_received(body + u32_at(b, kBodySizeAt)),
        end(last_received + (has_last_receive(b) ? kLastReceivedSize : 0)) {}

  std::size_t group, deduplication, sender, trace, source, attributes, body, last_received, end;
};

std::string_view slice(const char* bytes, std::size_t from, std::size_t to) {
  return {bytes + from, to - from};
}

void put_big_endian(std::string& out, std::size_t size) {
  for (int shift = 24; shift >= 0; shift -= 8)
    out.push_back(static_cast<char>(size >> shift & 0xFF));
}

}  // namespace

Content* Content::allocate(std::size_t size) {
  CHECK(size <= UINT32_MAX, "content is far below 4 GiB");
  void* memory = ::operator new(sizeof(Content) + size);
  return new (memory) Content(static_cast<std::uint32_t>(size));
}

void intrusive_ptr_release(const Content* content) {
  if (content->references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  content->~Content();
  ::operator delete(const_cast<Content*>(content));
}

ContentPtr Content::make(const ContentParts& parts) {
  CHECK(parts.group.size() <= 255 && parts.deduplication_id.size() <= 255 &&
            parts.sender.size() <= 255,
        "sizes were validated");
  const std::string_view tail[] = {
      parts.group,      parts.deduplication_id,  parts.sender, parts.trace_header,
      parts.source_arn, parts.attribute_section, parts.body};
  std::size_t size = kHeadSize + (parts.last_received ? kLastReceivedSize : 0);
  for (const auto part : tail) size += part.size();

  Content* content = allocate(size);
  char* b = content->mutable_bytes();
  b[0] = static_cast<char>(parts.last_received ? kVersionWithLastReceive : kContentVersion);
  b[kGroupSizeAt] = static_cast<char>(parts.group.size());
  b[kDeduplicationSizeAt] = static_cast<char>(parts.deduplication_id.size());
  b[kSenderSizeAt] = static_cast<char>(parts.sender.size());
  store(b + kTraceSizeAt, static_cast<std::uint32_t>(parts.trace_header.size()));
  store(b + kSourceSizeAt, static_cast<std::uint32_t>(parts.source_arn.size()));
  store(b + kAttributesSizeAt, static_cast<std::uint32_t>(parts.attribute_section.size()));
  store(b + kBodySizeAt, static_cast<std::uint32_t>(parts.body.size()));
  store(b + kSentAt, to_millis(parts.sent));
  store(b + kIdAt, parts.id.bytes);
  store(b + kMd5At, parts.body_md5 != nullptr ? *parts.body_md5 : md5(parts.body));
  char* at = b + kHeadSize;
  for (const auto part : tail) at = std::copy(part.begin(), part.end(), at);
  if (parts.last_received) store(at, to_millis(*parts.last_received));
  return ContentPtr(content);
}

Result<ContentPtr> Content::parse(std::string_view encoded) {
  if (encoded.size() < kHeadSize) return fail("message content is cut short");
  const std::size_t version = byte_at(encoded.data(), 0);
  if (version != kContentVersion && version != kVersionWithLastReceive)
    return fail("message content has an unknown version; it was written by a newer release");
  const Offsets offsets(encoded.data());
  if (offsets.end != encoded.size()) return fail("message content has a wrong size");
  if (version == kVersionWithLastReceive &&
      !is_date(from_millis(load<std::int64_t>(encoded.data() + offsets.last_received))))
    return fail("message content has a damaged time");
  std::vector<AttributeView> attributes;
  if (!decode_attributes(slice(encoded.data(), offsets.attributes, offsets.body), attributes))
    return fail("message content has damaged attributes");
  Content* content = allocate(encoded.size());
  std::memcpy(content->mutable_bytes(), encoded.data(), encoded.size());
  return ContentPtr(content);
}

MessageId Content::id() const {
  return {load<decltype(MessageId::bytes)>(bytes() + kIdAt)};
}
Md5 Content::body_md5() const {
  return load<Md5>(bytes() + kMd5At);
}
Instant Content::sent() const {
  return from_millis(load<std::int64_t>(bytes() + kSentAt));
}

std::string_view Content::group() const {
  return {bytes() + kHeadSize, byte_at(bytes(), kGroupSizeAt)};
}

std::string_view Content::deduplication_id() const {
  const Offsets at(bytes());
  return slice(bytes(), at.deduplication, at.sender);
}

std::string_view Content::sender() const {
  const Offsets at(bytes());
  return slice(bytes(), at.sender, at.trace);
}

std::string_view Content::trace_header() const {
  const Offsets at(bytes());
  return slice(bytes(), at.trace, at.source);
}

std::string_view Content::source_arn() const {
  const Offsets at(bytes());
  return slice(bytes(), at.source, at.attributes);
}

std::optional<Instant> Content::last_received() const {
  if (!has_last_receive(bytes())) return std::nullopt;
  return from_millis(load<std::int64_t>(bytes() + Offsets(bytes()).last_received));
}

std::string_view Content::attribute_section() const {
  const Offsets at(bytes());
  return slice(bytes(), at.attributes, at.body);
}

std::string_view Content::body() const {
  const Offsets at(bytes());
  return slice(bytes(), at.body, at.last_received);
}

std::vector<AttributeView> Content::attributes() const {
  std::vector<AttributeView> out;
  const bool decoded = decode_attributes(attribute_section(), out);
  CHECK(decoded, "the section was checked when the content was made");
  return out;
}

std::size_t Content::message_size() const {
  std::size_t size = body().size();
  if (attribute_section().empty()) return size;
  for (const AttributeView& a : attributes())
    size += a.name.size() + a.data_type.size() + a.value.size();
  return size;
}

ContentParts Content::parts() const {
  return {.id = id(),
          .sent = sent(),
          .body = body(),
          .group = group(),
          .deduplication_id = deduplication_id(),
          .sender = sender(),
          .trace_header = trace_header(),
          .source_arn = source_arn(),
          .last_received = last_received(),
          .attribute_section = attribute_section(),
          .body_md5 = nullptr};
}

std::string encode_attributes(const std::vector<AttributeView>& attributes) {
  std::string out;
  ByteWriter writer(out);
  for (const AttributeView& a : attributes) {
    writer.text(a.name);
    writer.text(a.data_type);
    writer.u8(static_cast<std::uint8_t>(a.kind));
    writer.text(a.value);
  }
  return out;
}

bool decode_attributes(std::string_view section, std::vector<AttributeView>& out) {
  ByteReader reader(section);
  while (!reader.at_end()) {
    AttributeView a;
    a.name = reader.text();
    a.data_type = reader.text();
    a.kind = static_cast<ValueKind>(reader.u8());
    a.value = reader.text();
    const bool known = a.kind == ValueKind::kString || a.kind == ValueKind::kBinary;
    if (!reader.ok() || !known) return false;
    out.push_back(a);
  }
  return reader.ok();
}

Md5 md5_of_attributes(std::vector<AttributeView> attributes) {
  std::ranges::sort(attributes, {}, &AttributeView::name);
  std::string input;
  for (const AttributeView& a : attributes) {
    for (const std::string_view part : {a.name, a.data_type}) {
      put_big_endian(input, part.size());
      input.append(part);
    }
    input.push_back(static_cast<char>(a.kind));
    put_big_endian(input, a.value.size());
    input.append(a.value);
  }
  return md5(input);
}

}  // namespace stanchion
