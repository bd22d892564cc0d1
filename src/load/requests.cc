#include "load/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "load/replies.h"
#include "os/clock.h"
#include "wire/sigv4.h"

namespace stanchion::load {
namespace {

constexpr std::string_view kNobody = "BENCHBENCHBENCHBENCH";
constexpr std::size_t kNoQueue = ~std::size_t{0};

void append_number(std::string& out, std::size_t value) {
  fmt::format_to(std::back_inserter(out), "{}", value);
}

// The path of "http://host:port/account/name"; "/" if there is none.
std::string path_of(std::string_view url) {
  const std::size_t host = url.find("://");
  const std::size_t path = url.find('/', host == std::string_view::npos ? 0 : host + 3);
  return path == std::string_view::npos ? "/" : std::string(url.substr(path));
}

}  // namespace

void append_form_value(std::string& out, std::string_view value) {
  for (const char c : value) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
        c == '_' || c == '.' || c == '~') {
      out.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.push_back('%');
      out.push_back("0123456789ABCDEF"[byte >> 4]);
      out.push_back("0123456789ABCDEF"[byte & 0xF]);
    }
  }
}

RequestWriter::RequestWriter(const Options& options, net::Url url)
    : options_(options), url_(std::move(url)), json_(options.protocol == Protocol::kJson) {}

void RequestWriter::add_queue(std::string_view url) {
  QueueText queue;
  queue.url = json_ ? std::string(url) : decode_xml(url);
  queue.path = json_ ? url_.path : path_of(queue.url);
  if (json_) {
    queue.prefix = fmt::format("{{\"QueueUrl\":\"{}\"", url);
  } else {
    queue.prefix = "&Version=2012-11-05&QueueUrl=";
    append_form_value(queue.prefix, queue.url);
  }
  queues_.push_back(std::move(queue));
}

// Bodies.

void RequestWriter::begin(std::string_view action, std::size_t queue) {
  body_.clear();
  if (!json_) body_.append("Action=").append(action);
  if (queue != kNoQueue) {
    body_.append(queues_[queue].prefix);
  } else {
    body_.append(json_ ? "{" : "&Version=2012-11-05");
  }
}

// A member of the current object: in JSON after a comma unless it is the first.
void RequestWriter::member(std::string_view name, std::string_view value) {
  if (json_) {
    if (body_.back() != '{') body_.push_back(',');
    body_.append("\"").append(name).append("\":\"").append(value).append("\"");
    return;
  }
  body_.append("&").append(entries_).append(name).append("=");
  append_form_value(body_, value);
}

void RequestWriter::number(std::string_view name, std::size_t value) {
  if (json_) {
    if (body_.back() != '{') body_.push_back(',');
    body_.append("\"").append(name).append("\":");
  } else {
    body_.append("&").append(name).append("=");
  }
  append_number(body_, value);
}

void RequestWriter::send(std::string& out, const Ledger& ledger,
                         std::span<PlacedMessage> messages) {
  const bool batch = messages.size() > 1;
  const std::string_view action = batch ? "SendMessageBatch" : "SendMessage";
  const std::size_t queue = messages.front().id.queue;
  begin(action, queue);
  if (batch && json_) body_.append(",\"Entries\":[");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (batch) {
      if (json_) body_.append(i == 0 ? "{" : ",{");
      if (!json_) entries_ = fmt::format("SendMessageBatchRequestEntry.{}.", i + 1);
      member("Id", std::string_view("0123456789").substr(i, 1));
    }
    // The body consists of letters that need no escaping in either protocol.
    body_.append(json_ ? ",\"MessageBody\":\"" : fmt::format("&{}MessageBody=", entries_));
    messages[i].at = body_.size();
    ledger.append_body(body_, messages[i].id);
    if (json_) body_.append("\"");
    if (options_.group_count() > 0)
      member("MessageGroupId", fmt::format("g{}", messages[i].id.group));
    if (options_.fifo)
      member("MessageDeduplicationId", fmt::format("d{}-{}", queue, messages[i].id.number));
    if (batch && json_) body_.append("}");
  }
  entries_.clear();
  if (batch && json_) body_.append("]");
  end(out, action, queues_[queue].path);
  for (PlacedMessage& message : messages) message.at += out.size() - body_.size();
}

void RequestWriter::receive(std::string& out, std::size_t queue, std::size_t max,
                            std::size_t wait) {
  begin("ReceiveMessage", queue);
  number("MaxNumberOfMessages", max);
  number("WaitTimeSeconds", wait);
  end(out, "ReceiveMessage", queues_[queue].path);
}

void RequestWriter::remove(std::string& out, std::size_t queue,
                           std::span<const std::string> receipts) {
  const bool batch = receipts.size() > 1;
  const std::string_view action = batch ? "DeleteMessageBatch" : "DeleteMessage";
  begin(action, queue);
  if (batch && json_) body_.append(",\"Entries\":[");
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    if (batch) {
      if (json_) body_.append(i == 0 ? "{" : ",{");
      if (!json_) entries_ = fmt::format("DeleteMessageBatchRequestEntry.{}.", i + 1);
      member("Id", std::string_view("0123456789").substr(i, 1));
    }
    member("ReceiptHandle", receipts[i]);
    if (batch && json_) body_.append("}");
  }
  entries_.clear();
  if (batch && json_) body_.append("]");
  end(out, action, queues_[queue].path);
}

void RequestWriter::create_queue(std::string& out, std::string_view name, const Pairs& attributes) {
  begin("CreateQueue", kNoQueue);
  member("QueueName", name);
  if (json_) body_.append(",\"Attributes\":{");
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    const auto& [key, value] = attributes[i];
    if (json_) {
      member(key, value);
    } else {
      member(fmt::format("Attribute.{}.Name", i + 1), key);
      member(fmt::format("Attribute.{}.Value", i + 1), value);
    }
  }
  if (json_) body_.append("}");
  end(out, "CreateQueue", url_.path);
}

void RequestWriter::delete_queue(std::string& out, std::size_t queue) {
  begin("DeleteQueue", queue);
  end(out, "DeleteQueue", queues_[queue].path);
}

void RequestWriter::post(std::string& out, std::string_view body) {
  body_.assign(body);
  finish(out, "SendMessage", url_.path);
}

// Heads.

void RequestWriter::end(std::string& out, std::string_view action, std::string_view path) {
  if (json_) body_.push_back('}');
  finish(out, action, path);
}

void RequestWriter::finish(std::string& out, std::string_view action, std::string_view path) {
  if (!options_.access_key_id.empty() && !options_.anonymous) {
    out = signed_head(action, path, body_);
  } else {
    // A run uses few actions, so their heads are cached. In Query each queue has its own path, so
    // there the heads are not cached.
    const auto found =
        std::ranges::find(heads_, action, &std::pair<std::string, std::string>::first);
    if (json_ && found != heads_.end()) {
      out = found->second;
    } else {
      out = head_of(action, path);
      if (json_) heads_.emplace_back(action, out);
    }
  }
  append_number(out, body_.size());
  out.append("\r\n\r\n").append(body_);
}

Pairs RequestWriter::headers_of(std::string_view action) const {
  Pairs headers{{"Host", url_.authority()}, {"User-Agent", "stanchion-bench/" STANCHION_VERSION}};
  if (json_) {
    headers.emplace_back("Content-Type", "application/x-amz-json-1.0");
    headers.emplace_back("X-Amz-Target", fmt::format("AmazonSQS.{}", action));
  } else {
    headers.emplace_back("Content-Type", "application/x-www-form-urlencoded; charset=utf-8");
  }
  return headers;
}

std::string RequestWriter::signed_head(std::string_view action, std::string_view path,
                                       std::string_view body) const {
  const Pairs headers = headers_of(action);
  std::string head = fmt::format("POST {} HTTP/1.1\r\n", path);
  for (const auto& [name, value] : headers) head += fmt::format("{}: {}\r\n", name, value);
  head += authorization(headers, path, body);
  return head += "Content-Length: ";
}

std::string RequestWriter::head_of(std::string_view action, std::string_view path) const {
  if (!options_.anonymous) return signed_head(action, path, "");
  std::string head = fmt::format("POST {} HTTP/1.1\r\n", path);
  for (const auto& [name, value] : headers_of(action))
    head += fmt::format("{}: {}\r\n", name, value);
  return head += "Content-Length: ";
}

std::string RequestWriter::authorization(const Pairs& headers, std::string_view path,
                                         std::string_view body) const {
  std::vector<wire::HeaderView> views;
  for (const auto& [name, value] : headers) views.emplace_back(name, value);
  const bool nobody = options_.access_key_id.empty();
  os::SystemClock clock;
  std::string lines;
  for (const auto& [name, value] :
       wire::sign({"POST", path, views, body},
                  {.access_key_id = nobody ? kNobody : std::string_view(options_.access_key_id),
                  .secret = nobody ? kNobody : std::string_view(options_.secret),
                  .session_token = options_.session_token,
                  .region = options_.region},
                  clock.now()))
    lines += fmt::format("{}: {}\r\n", name, value);
  return lines;
}

}  // namespace stanchion::load
