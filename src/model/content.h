// The part of a message that never changes while the message is in a queue, as one block of bytes.
//
// The block is the same in memory, in the journal and in the store, so a message is encoded once,
// when it is sent, and only copied from then on. docs/formats.md describes the block with an
// example.
//
//   offset  size
//   0       1     version: 1, or 2 if it says when it was last received
//   1       1     size of the group id
//   2       1     size of the deduplication id
//   3       1     size of the sender id
//   4       4     size of the trace header
//   8       4     size of the dead-letter source ARN
//   12      4     size of the attribute section
//   16      4     size of the body
//   20      8     sent, milliseconds since 1970
//   28      16    message id
//   44      16    MD5 of the body
//   60      …     group id, deduplication id, sender id, trace header, source ARN, attributes, body
//   …       8     version 2: last received in the queue that it came from, milliseconds since 1970
//
// Content is immutable and its reference count is atomic: any thread may hold a ContentPtr.
#pragma once

#include <atomic>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "base/time.h"
#include "model/ids.h"

namespace stanchion {

enum class ValueKind : std::uint8_t { kString = 1, kBinary = 2 };

// A message attribute as it is stored: validated, with exactly one value.
struct AttributeView {
  std::string_view name;
  std::string_view data_type;  // String, Number or Binary, with an optional ".label".
  ValueKind kind = ValueKind::kString;
  std::string_view value;

  friend bool operator==(const AttributeView&, const AttributeView&) = default;
};

class Content;
using ContentPtr = boost::intrusive_ptr<const Content>;

// The parts from which a Content is made.
struct ContentParts {
  MessageId id;
  Instant sent;
  std::string_view body;
  std::string_view group;
  std::string_view deduplication_id;
  std::string_view sender;
  std::string_view trace_header;
  std::string_view source_arn;
  std::optional<Instant> last_received;  // A dead letter: in the queue that it came from.
  std::string_view attribute_section;    // As encode_attributes() makes it.
  const Md5* body_md5 = nullptr;         // Set if it is known already.
};

class Content {
 public:
  static ContentPtr make(const ContentParts& parts);

  // Takes bytes from a disk or a peer, so everything is bounds-checked.
  static Result<ContentPtr> parse(std::string_view encoded);

  std::string_view encoded() const { return {bytes(), size_}; }

  MessageId id() const;
  Md5 body_md5() const;
  Instant sent() const;
  std::string_view group() const;
  std::string_view deduplication_id() const;
  std::string_view sender() const;
  std::string_view trace_header() const;
  std::string_view source_arn() const;
  std::optional<Instant> last_received() const;
  std::string_view attribute_section() const;
  std::string_view body() const;

  // In the order in which they were sent.
  std::vector<AttributeView> attributes() const;

  // Bytes of the body and of the attributes' names, types and values, which is what SQS limits.
  std::size_t message_size() const;

  // The parts of this message, from which a changed copy can be made.
  ContentParts parts() const;

  // Whether somebody else holds it, too; those may let it go at any moment.
  bool is_shared() const { return references_.load(std::memory_order_relaxed) > 1; }

  // Bytes of memory that this block takes.
  std::size_t footprint() const { return sizeof(Content) + size_; }

  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;

 private:
  explicit Content(std::uint32_t size) : size_(size) {}
  static Content* allocate(std::size_t size);

  const char* bytes() const { return reinterpret_cast<const char*>(this + 1); }
  char* mutable_bytes() { return reinterpret_cast<char*>(this + 1); }

  friend void intrusive_ptr_add_ref(const Content* content) {
    content->references_.fetch_add(1, std::memory_order_relaxed);
  }
  friend void intrusive_ptr_release(const Content* content);

  mutable std::atomic<std::uint32_t> references_{0};
  std::uint32_t size_;
};

std::string encode_attributes(const std::vector<AttributeView>& attributes);

// Returns false if the section is damaged.
bool decode_attributes(std::string_view section, std::vector<AttributeView>& out);

// MD5 over attributes as SQS defines it: sorted by name, lengths as 32-bit big-endian.
Md5 md5_of_attributes(std::vector<AttributeView> attributes);

}  // namespace stanchion
