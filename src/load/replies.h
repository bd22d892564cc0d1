// Finds in an SQS answer what the load generator needs, without building a tree: the rows of a
// batch, of a receive, or the one row of a single send.
//
// Views point into the answer. JSON values stay escaped as they are written: they go back to the
// server unchanged.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "load/options.h"

namespace stanchion::load {

struct ReplyRow {
  std::string_view id;        // Of a batch entry.
  std::string_view body;      // Of a received message.
  std::string_view md5;       // Of the body.
  std::string_view receipt;   // As it has to be sent back, except for escapes of XML.
  std::string_view sequence;  // Of a FIFO send.
};

class ReplyReader {
 public:
  // False if the text is not an answer of the protocol.
  bool read(Protocol protocol, std::string_view text);

  const std::vector<ReplyRow>& rows() const { return rows_; }
  // Entries of a batch that were refused, and the first of them as text.
  std::size_t failed() const { return failed_; }
  std::string_view first_failure() const { return first_failure_; }

 private:
  bool read_json(std::string_view text);
  bool read_xml(std::string_view text);
  void finish_row(const ReplyRow& row, bool failed, std::string_view source);

  std::vector<ReplyRow> rows_;
  std::size_t failed_ = 0;
  std::string_view first_failure_;
};

// The value of a string member, wherever it occurs; empty if there is none. For answers that are
// read once in a run.
std::string_view find_value(Protocol protocol, std::string_view text, std::string_view name);

// &amp; and the four other predefined entities.
std::string decode_xml(std::string_view text);

}  // namespace stanchion::load
