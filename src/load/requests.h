// Writes the bytes of requests: everything that is the same in all of them is made once, so that a
// request costs a few copies. With credentials, each request is signed; without, all carry one
// prepared signature that belongs to nobody, which servers without accounts expect to see and
// ignore.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "load/ledger.h"
#include "load/options.h"
#include "net/url.h"

namespace stanchion::load {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// A message within the bytes of a request.
struct PlacedMessage {
  MessageId id;
  std::size_t at = 0;  // Where its body begins.
};

class RequestWriter {
 public:
  RequestWriter(const Options& options, net::Url url);

  // Queues are numbered in the order in which they are added. `url` is as the server returned it.
  void add_queue(std::string_view url);
  std::size_t queue_count() const { return queues_.size(); }
  std::string_view queue_url(std::size_t queue) const { return queues_[queue].url; }

  // Each replaces `out` with a complete request. A batch of one is a single call.
  void send(std::string& out, const Ledger& ledger, std::span<PlacedMessage> messages);
  void receive(std::string& out, std::size_t queue, std::size_t max, std::size_t wait);
  void remove(std::string& out, std::size_t queue, std::span<const std::string> receipts);
  void create_queue(std::string& out, std::string_view name, const Pairs& attributes);
  void delete_queue(std::string& out, std::size_t queue);
  void post(std::string& out, std::string_view body);  // Any body, to the path of the URL.

 private:
  struct QueueText {
    std::string url;
    std::string path;    // The path that a Query call is posted to.
    std::string prefix;  // The beginning of a body that concerns this queue.
  };

  void begin(std::string_view action, std::size_t queue);
  void member(std::string_view name, std::string_view value);
  void number(std::string_view name, std::size_t value);
  void end(std::string& out, std::string_view action, std::string_view path);
  void finish(std::string& out, std::string_view action, std::string_view path);
  std::string head_of(std::string_view action, std::string_view path) const;
  std::string signed_head(std::string_view action, std::string_view path,
                          std::string_view body) const;
  std::string authorization(const Pairs& headers, std::string_view path,
                            std::string_view body) const;
  Pairs headers_of(std::string_view action) const;

  const Options& options_;
  const net::Url url_;
  const bool json_;
  std::vector<QueueText> queues_;
  std::string body_;     // The body being written.
  std::string entries_;  // In Query: the prefix of every member of the current entry.
  std::vector<std::pair<std::string, std::string>> heads_;  // By action and path, made so far.
};

// Percent-encodes everything except letters, digits and -_.~, as in a form.
void append_form_value(std::string& out, std::string_view value);

}  // namespace stanchion::load
