#include "net/request_parser.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <optional>

#include "base/check.h"
#include "base/text.h"
#include "net/chunked_body.h"

namespace stanchion::net {
namespace http = boost::beast::http;
using boost::system::error_code;
using BeastView = boost::beast::string_view;

namespace {

constexpr std::string_view kEndOfHead = "\r\n\r\n";
// Memory reserved because of a Content-Length, before its bytes have come.
constexpr std::size_t kBodyReserveMax = 16 * 1024;

std::string_view view(BeastView text) {
  return {text.data(), text.size()};
}

// A method begins with a letter. Anything else is not HTTP; rejecting it at once spares a client
// that speaks TLS to a plain port the wait for its timeout.
bool begins_a_method(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

// "/path?query" of "http://host/path?query", the form that clients send to proxies and may send to
// us.
std::string_view origin_form(std::string_view target) {
  if (target.starts_with('/')) return target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equals_ignoring_ascii_case(target.substr(0, scheme.size()), scheme)) continue;
    return target.substr(std::min(target.find_first_of("/?", scheme.size()), target.size()));
  }
  return target;
}

// Whether the request line ends as it should, with any version.
bool names_a_version(std::string_view head) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  constexpr std::string_view kForm = " HTTP/d.d";
  if (line.size() < kForm.size()) return false;
  const std::string_view tail = line.substr(line.size() - kForm.size());
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return tail.starts_with(" HTTP/") && is_digit(tail[6]) && tail[7] == '.' && is_digit(tail[8]);
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

const char* skip_blanks(const char* at) {
  while (is_blank(*at)) ++at;
  return at;
}

// Whether a header takes one line of `head`, which ends with an empty line: the value begins on the
// line of its name, and the next line does not continue it. A value that was put together from
// several lines does not lie in the head at all.
bool is_on_one_line(std::string_view head, std::string_view name, std::string_view value) {
  const char* at = skip_blanks(name.data() + name.size() + 1);  // Behind the colon.
  if (!value.empty()) {
    if (value.data() != at) return false;
    at = skip_blanks(at + value.size());
  }
  return head.data() + head.size() - at >= 4 && at[0] == '\r' && at[1] == '\n' && !is_blank(at[2]);
}

bool is_compressed(std::string_view coding) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"gzip", "x-gzip", "deflate", "br", "compress",
                                              "zstd"},
      [&](std::string_view name) { return equals_ignoring_ascii_case(coding, name); });
}

}  // namespace

// Beast parses the head and applies the rules of framing; this class only stores the parts. The
// body is read by our own code: Beast's reader of chunks crashes on some ways of splitting the
// input.
struct RequestParser::Impl {
  class Parser final : public http::basic_parser<true> {
   public:
    explicit Parser(RequestParser& owner) : owner_(owner), request_(*owner.request_) {
      header_limit(static_cast<std::uint32_t>(owner.limits_.header_bytes_max));
      body_limit(owner.limits_.body_bytes_max);
      eager(true);
    }

   private:
    void on_request_impl(http::verb, BeastView method, BeastView target, int version,
                         error_code&) override {
      request_.method = view(method);
      request_.target = origin_form(view(target));
      request_.http_1_0 = version == 10;
    }

    void on_field_impl(http::field, BeastView name, BeastView value, error_code& ec) override {
      if (owner_.head_done_) return;  // Trailers contain nothing that we need.
      if (!is_on_one_line(request_.head, view(name), view(value))) {
        ec = http::error::bad_obs_fold;
      } else if (request_.headers.size() == owner_.limits_.header_count_max) {
        ec = http::error::header_limit;
      } else {
        request_.headers.push_back({view(name), view(value)});
      }
    }

    void on_header_impl(error_code&) override {}

    // The remaining callbacks are about bodies, which Beast is not given.
    void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
    std::size_t on_body_impl(BeastView, error_code&) override { return 0; }
    void on_chunk_header_impl(std::uint64_t, BeastView, error_code&) override {}
    std::size_t on_chunk_body_impl(std::uint64_t, BeastView, error_code&) override { return 0; }
    void on_finish_impl(error_code&) override {}
    void on_response_impl(int, BeastView, int, error_code&) override {}

    RequestParser& owner_;
    HttpRequest& request_;
  };

  std::optional<Parser> parser;
  std::optional<ChunkedBody> chunks;
};

RequestParser::RequestParser(const ParserLimits& limits)
    : limits_(limits), impl_(std::make_unique<Impl>()) {}
RequestParser::~RequestParser() = default;

void RequestParser::start(HttpRequest& request) {
  request_ = &request;
  scanned_ = 0;
  head_done_ = complete_ = keep_alive_ = expects_continue_ = false;
  failure_ = {};
  body_left_ = 0;
  impl_->parser.emplace(*this);
  impl_->chunks.reset();
}

std::size_t RequestParser::feed(std::string_view input) {
  CHECK(request_ != nullptr && !complete_ && !failed(), "a parser takes one request at a time");
  std::size_t used = 0;
  if (!head_done_) {
    used = feed_head(input);
    if (!head_done_ || complete_ || failed()) return used;
  }
  if (used < input.size()) used += feed_body(input.substr(used));
  return used;
}

std::size_t RequestParser::feed_head(std::string_view input) {
  const std::size_t end = input.find(kEndOfHead, scanned_);
  const bool whole = end != std::string_view::npos;
  const std::size_t size = whole ? end + kEndOfHead.size() : input.size();
  if (size > limits_.header_bytes_max) {
    fail(431, "The request line and headers are too large.");
    return 0;
  }
  if (!input.empty() && !begins_a_method(input.front())) {
    fail(400, "The request is not valid HTTP.");
    return 0;
  }
  if (!whole) {
    scanned_ = size - std::min(size, kEndOfHead.size() - 1);
    return 0;
  }
  request_->head.assign(input.data(), size);
  error_code ec;
  const std::size_t parsed = impl_->parser->put({request_->head.data(), request_->head.size()}, ec);
  if (ec == http::error::header_limit) {
    fail(431, "The request has too many headers.");
  } else if (ec == http::error::body_limit) {
    fail(413, "The request body is too large.");
  } else if (ec == http::error::bad_version && names_a_version(request_->head)) {
    fail(505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.");
  } else if (ec || !impl_->parser->is_header_done() || parsed != size) {
    fail(400, "The request is not valid HTTP.");
  } else {
    check_head();
  }
  return size;
}

// What the grammar permits and we do not.
void RequestParser::check_head() {
  std::size_t hosts = 0;
  std::size_t codings = 0;
  for (const HttpHeader& header : request_->headers) {
    switch (header.name.size()) {
      case 4:
        if (!equals_ignoring_ascii_case(header.name, "host")) break;
        if (!is_host(header.value)) return fail(400, "The Host header is not a host.");
        ++hosts;
        break;
      case 6:
        if (!equals_ignoring_ascii_case(header.name, "expect")) break;
        if (!equals_ignoring_ascii_case(header.value, "100-continue")) {
          return fail(417, "The only expectation met here is 100-continue.");
        }
        expects_continue_ = !request_->http_1_0;
        break;
      case 16:
        if (equals_ignoring_ascii_case(header.name, "content-encoding") &&
            is_compressed(header.value))
          return fail(415,
                      "Compressed bodies are not taken here; send it without Content-Encoding.");
        break;
      case 17:
        codings += equals_ignoring_ascii_case(header.name, "transfer-encoding") ? 1 : 0;
        if (codings > 0 && !equals_ignoring_ascii_case(header.value, "chunked") &&
            equals_ignoring_ascii_case(header.name, "transfer-encoding")) {
          return fail(501, "The only transfer coding known here is chunked.");
        }
        break;
      default:
        break;
    }
  }
  if (codings > 0 && request_->http_1_0) return fail(400, "HTTP/1.0 has no transfer codings.");
  if (hosts > 1) return fail(400, "The request has more than one Host header.");
  if (hosts == 0 && !request_->http_1_0) return fail(400, "The request has no Host header.");
  head_done_ = true;
  complete_ = impl_->parser->is_done();
  keep_alive_ = impl_->parser->keep_alive();
  expects_continue_ = expects_continue_ && !complete_;
  if (complete_) return;
  if (codings > 0) {
    impl_->chunks.emplace(limits_.body_bytes_max, limits_.header_bytes_max);
  } else {
    // A request without a length has no body and is complete; one beyond the limit was refused.
    body_left_ = static_cast<std::size_t>(impl_->parser->content_length().value());
    request_->body.reserve(std::min(body_left_, kBodyReserveMax));
  }
}

std::size_t RequestParser::feed_body(std::string_view input) {
  if (impl_->chunks) return feed_chunks(input);
  const std::size_t used = std::min(body_left_, input.size());
  std::string& body = request_->body;
  // Not more than twice what has arrived, and not more than will arrive.
  if (body.size() + used > body.capacity())
    body.reserve(
        std::min(std::max(body.capacity() * 2, body.size() + used), body.size() + body_left_));
  body.append(input.substr(0, used));
  body_left_ -= used;
  complete_ = body_left_ == 0;
  return used;
}

std::size_t RequestParser::feed_chunks(std::string_view input) {
  const std::size_t used = impl_->chunks->feed(input, request_->body);
  switch (impl_->chunks->state()) {
    case ChunkedBody::State::kMore:
      break;
    case ChunkedBody::State::kDone:
      complete_ = true;
      break;
    case ChunkedBody::State::kBad:
      fail(400, "The request body is not framed as HTTP says.");
      break;
    case ChunkedBody::State::kTooLarge:
      fail(413, "The request body is too large.");
      break;
    case ChunkedBody::State::kTooLong:
      fail(431, "A chunk's head or the trailers are too large.");
      break;
  }
  return used;
}

void RequestParser::fail(int status, std::string_view reason) {
  failure_ = {status, reason};
}

}  // namespace stanchion::net
