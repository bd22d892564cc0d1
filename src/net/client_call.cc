#include "net/client_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <iterator>

#include "base/check.h"
#include "base/text.h"

namespace stanchion::net {
namespace {

// A character of a method's or a header's name.
bool is_token_character(char c) {
  static constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kOthers.find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_character);
}

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7F;
  });
}

bool is_ours(std::string_view name) {
  for (const char* ours : {"Host", "Content-Length", "Connection", "Transfer-Encoding"})
    if (equals_ignoring_ascii_case(name, ours)) return true;
  return false;
}

// Serialises the request; fails if a part of it could be misread as something else.
Result<std::string> write_request(const ClientRequest& request) {
  const std::string& path = request.url.path;
  if (!is_token(request.method)) return fail("the method is no word of HTTP");
  if (!path.starts_with('/') || has_control_character(path) ||
      path.find_first_of(" \t") != std::string::npos)
    return fail("the path of the URL holds what no path may hold");
  const std::string authority = request.url.authority();
  if (has_control_character(authority)) return fail("the host holds what no name may hold");
  std::string bytes =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, path, authority);
  for (const auto& [name, value] : request.headers) {
    if (!is_token(name) || has_control_character(value))
      return fail(fmt::format("the header {} holds what no header may hold", name));
    if (is_ours(name)) return fail(fmt::format("the header {} is the client's own", name));
    bytes += fmt::format("{}: {}\r\n", name, value);
  }
  if (!request.keep_alive) bytes += "Connection: close\r\n";
  bytes += fmt::format("Content-Length: {}\r\n\r\n", request.body.size());
  bytes += request.body;
  return bytes;
}

Headers read_headers(std::string_view lines) {
  Headers headers;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find("\r\n"), lines.size());
    const std::string_view line = lines.substr(0, end);
    const std::size_t colon = std::min(line.find(':'), line.size());
    std::string_view value = line.substr(std::min(colon + 1, line.size()));
    while (!value.empty() && (value.front() == ' ' || value.front() == '\t'))
      value.remove_prefix(1);
    while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
    headers.emplace_back(line.substr(0, colon), value);
    lines.remove_prefix(std::min(end + 2, lines.size()));
  }
  return headers;
}

}  // namespace

// Idle connections.

std::unique_ptr<ClientConnection> IdleConnections::take(const std::string& key, SteadyTime now) {
  std::erase_if(idle_, [&](const Idle& idle) { return now - idle.since >= time_max_; });
  while (true) {
    const auto last = std::ranges::find(idle_.rbegin(), idle_.rend(), key, &Idle::key);
    if (last == idle_.rend()) return nullptr;
    auto connection = std::move(last->connection);
    idle_.erase(std::next(last).base());
    if (connection->is_quiet()) return connection;
  }
}

void IdleConnections::give(std::string key, std::unique_ptr<ClientConnection> connection,
                           SteadyTime now) {
  CHECK(connection->is_open() && !connection->is_due(), "an idle connection can be used");
  if (count_max_ == 0) return;
  if (idle_.size() == count_max_) idle_.erase(idle_.begin());
  idle_.push_back({std::move(key), std::move(connection), now});
}

Result<ssl_ctx_st*> ClientState::tls_context() {
  if (!context) {
    auto made = make_client_context(options.trust);
    if (!made) return std::unexpected(made.error());
    context = std::move(*made);
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL.
  }
  return context.get();
}

// Calls.

ClientCall::ClientCall(ClientState& state, ClientRequest request, SteadyTime now)
    : state_(state),
      request_(std::move(request)),
      key_(fmt::format("{} {}:{}", request_.url.tls, request_.url.host, request_.url.port)),
      end_(now + request_.timeout.value_or(state.options.request_timeout)) {
  auto bytes = write_request(request_);
  if (!bytes) {
    fail_with(bytes.error().message);
    return;
  }
  bytes_ = std::move(*bytes);
  connection_ = state_.idle.take(key_, now);
  if (!connection_) {
    begin_again(now);
    return;
  }
  reused_ = true;
  needs_ = Needs::kSocket;
  connection_->send(bytes_, request_.method == "HEAD");
}

// Uses a new connection.
void ClientCall::begin_again(SteadyTime now) {
  reused_ = false;
  sent_ = sent();
  connection_.reset();
  connect_end_ = std::min(end_, now + state_.options.connect_timeout);
  needs_ = Needs::kAddresses;
  if (!request_.url.port.empty()) {
    if (const auto numeric = numeric_address(host(), port()))
      take_addresses(std::vector{*numeric}, now);
    return;
  }
  auto address = unix_address(request_.url.host);
  if (!address) return fail_with(address.error().message, address.error().os_error);
  take_addresses(std::vector{*address}, now);
}

void ClientCall::take_addresses(Result<std::vector<ClientAddress>> addresses, SteadyTime now) {
  CHECK(needs_ == Needs::kAddresses, "addresses are given to who asked");
  if (!addresses) return fail_with(addresses.error().message, addresses.error().os_error);
  addresses_ = std::move(*addresses);
  next_address_ = 0;
  // A resolver takes its own time; connecting gets its full timeout after that.
  connect_end_ = std::min(end_, now + state_.options.connect_timeout);
  if (now >= end_) return on_late(now);
  connect_next(now);
}

void ClientCall::connect_next(SteadyTime now) {
  std::string server_name = state_.options.server_name;
  if (server_name.empty()) server_name = request_.url.host;
  ssl_ctx_st* context = nullptr;
  if (request_.url.tls) {
    auto made = state_.tls_context();
    if (!made) return fail_with(made.error().message);
    context = *made;
  }
  Failure last{"there is no address"};
  while (next_address_ < addresses_.size()) {
    const auto left = static_cast<int>(addresses_.size() - next_address_);
    attempt_end_ = now + std::max(connect_end_ - now, SteadyTime::duration::zero()) / left;
    sent_ = sent();
    connection_ = std::make_unique<ClientConnection>(state_.options.limits);
    const Status begun = connection_->connect(addresses_[next_address_++], context, server_name);
    if (begun) {
      needs_ = Needs::kSocket;
      connection_->send(bytes_, request_.method == "HEAD");
      return;
    }
    last = begun.error();
  }
  fail_with(with_target(last.message), last.os_error);
}

SteadyTime ClientCall::deadline() const {
  const bool connecting = connection_ && !connection_->is_open();
  return connecting ? std::min(attempt_end_, end_) : end_;
}

void ClientCall::advance(SteadyTime now) {
  CHECK(needs_ == Needs::kSocket, "only what waits for its socket goes on with it");
  switch (connection_->advance({state_.scratch.get(), ClientState::kScratchSize})) {
    case ClientConnection::News::kResponse:
      return finish(now);
    case ClientConnection::News::kBroken:
      return on_broken(connection_->failure(), now);
    case ClientConnection::News::kEnded:
      return on_broken({"the server closed the connection without an answer"}, now);
    case ClientConnection::News::kNone:
      break;
  }
  if (now >= deadline()) on_late(now);
}

void ClientCall::on_broken(const Failure& failure, SteadyTime now) {
  if (reused_ && request_.repeatable && !connection_->answer_begun()) return begin_again(now);
  const bool refused = !connection_->was_open() && failure.os_error != 0;
  if (refused && next_address_ < addresses_.size()) return connect_next(now);
  fail_with(with_target(failure.message), failure.os_error);
}

void ClientCall::on_late(SteadyTime now) {
  const bool connecting = connection_ && !connection_->is_open();
  if (connecting && next_address_ < addresses_.size() && now < connect_end_)
    return connect_next(now);
  if (connecting) return fail_with(with_target("cannot connect: no answer in time"), ETIMEDOUT);
  fail_with("no reply in time", ETIMEDOUT);
}

void ClientCall::finish(SteadyTime now) {
  const ResponseReader& response = connection_->response();
  result_.emplace(ClientResponse{response.status(), read_headers(response.header_lines()),
                                 std::string(response.body())});
  needs_ = Needs::kNothing;
  sent_ = true;
  if (connection_->is_open() && request_.keep_alive)
    state_.idle.give(key_, std::move(connection_), now);
  connection_.reset();
}

void ClientCall::fail_with(std::string message, int os_error) {
  sent_ = sent();
  connection_.reset();
  needs_ = Needs::kNothing;
  result_.emplace(fail(std::move(message), os_error));
}

// "cannot connect" names the address.
std::string ClientCall::with_target(const std::string& message) const {
  static constexpr std::string_view kConnect = "cannot connect";
  static constexpr std::string_view kTls = "TLS";
  const Url& url = request_.url;
  const std::string target = url.port.empty() ? url.host : url.authority();
  if (message.starts_with(kConnect))
    return fmt::format("{} to {}{}", kConnect, target, message.substr(kConnect.size()));
  if (message.starts_with(kTls))
    return fmt::format("{} with {}{}", kTls, target, message.substr(kTls.size()));
  return message;
}

}  // namespace stanchion::net
