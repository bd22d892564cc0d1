#include "net/http_call.h"

#include <fmt/format.h>
#include <netdb.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>

#include "base/text.h"
#include "net/listen_socket.h"

namespace stanchion::net {
namespace {

constexpr std::size_t kReplySizeMax = 16 << 20;

// A connected socket with or without TLS on it.
struct Connection {
  Fd socket;
  TlsClientContext context;
  TlsSession session;
};

void set_timeouts(int fd, std::chrono::milliseconds timeout) {
  const auto seconds = timeout.count() / 1000;
  const auto micros = timeout.count() % 1000 * 1000;
  const timeval value{static_cast<time_t>(seconds), static_cast<suseconds_t>(micros)};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &value, sizeof value);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &value, sizeof value);
}

std::unexpected<Failure> cannot_connect(std::string_view to, int error) {
  return fail(fmt::format("cannot connect to {}: {}", to, std::strerror(error)), error);
}

Result<Fd> connect_unix(const std::string& path, std::chrono::milliseconds timeout) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return cannot_connect(path, ENAMETOOLONG);
  std::memcpy(address.sun_path, path.data(), path.size());
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return cannot_connect(path, errno);
  set_timeouts(fd.get(), timeout);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return cannot_connect(path, errno);
  return fd;
}

Result<Fd> connect_tcp(const Url& url, std::chrono::milliseconds timeout) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &list))
    return fail(fmt::format("{}: {}", url.host, ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  int last_error = ECONNREFUSED;
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    Fd fd(::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol));
    if (fd.valid()) set_timeouts(fd.get(), timeout);
    if (fd.valid() && ::connect(fd.get(), a->ai_addr, a->ai_addrlen) == 0) return fd;
    last_error = errno == EINPROGRESS ? ETIMEDOUT : errno;
  }
  return cannot_connect(url.authority(), last_error);
}

Status start_tls(Connection& connection, const Url& url, const TlsTrust& trust) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without a flag against it.
  auto context = make_client_context(trust);
  if (!context) return std::unexpected(context.error());
  connection.context = std::move(*context);
  connection.session =
      make_client_session(connection.context.get(), url.host, connection.socket.get());
  if (!connection.session) return fail("cannot set up TLS: " + take_tls_reason(nullptr));
  if (SSL_connect(connection.session.get()) != 1)
    return fail(
        fmt::format("TLS with {}: {}", url.authority(), take_tls_reason(connection.session.get())));
  return {};
}

Status send_all(Connection& connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent =
        connection.session
            ? SSL_write(connection.session.get(), bytes.data(),
                        static_cast<int>(std::min<std::size_t>(bytes.size(), 1 << 20)))
            : ::send(connection.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return fail("the server does not take the request");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

// The server closes behind its reply, because it was asked to.
Result<std::string> receive_all(Connection& connection) {
  std::string reply;
  char buffer[16 * 1024];
  while (true) {
    const ssize_t got = connection.session
                            ? SSL_read(connection.session.get(), buffer, sizeof buffer)
                            : ::recv(connection.socket.get(), buffer, sizeof buffer, 0);
    if (got > 0) reply.append(buffer, static_cast<std::size_t>(got));
    if (reply.size() > kReplySizeMax) return fail("the reply is too large");
    if (got == 0 || (got < 0 && connection.session && !reply.empty())) return reply;
    if (got < 0) return fail("no reply in time", errno);
  }
}

Result<HttpReply> parse_reply(std::string_view text) {
  const std::size_t head_end = text.find("\r\n\r\n");
  if (head_end == std::string_view::npos || !text.starts_with("HTTP/1.") || text.size() < 12)
    return fail("the reply is not HTTP");
  const auto status = parse_decimal(text.substr(9, 3));
  if (!status) return fail("the reply is not HTTP");
  return HttpReply{static_cast<int>(*status), std::string(text.substr(head_end + 4))};
}

}  // namespace

std::string Url::authority() const {
  if (port.empty()) return "localhost";
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", port);
}

Result<Url> parse_url(std::string_view text) {
  static constexpr std::string_view kUnix = "unix:";
  if (text.starts_with(kUnix) && text.size() > kUnix.size())
    return Url{false, std::string(text.substr(kUnix.size())), "", "/"};
  const auto wrong = [&] {
    return fail(fmt::format("\"{}\" is no URL; give it as in http://127.0.0.1:9324", text));
  };
  Url url;
  url.tls = text.starts_with("https://");
  if (!url.tls && !text.starts_with("http://")) return wrong();
  std::string_view rest = text.substr(url.tls ? 8 : 7);
  const std::size_t slash = rest.find('/');
  url.path = slash == std::string_view::npos ? "/" : std::string(rest.substr(slash));
  rest = rest.substr(0, slash);
  const std::size_t bracket = rest.rfind(']');
  const std::size_t colon = rest.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  url.port = has_port ? std::string(rest.substr(colon + 1)) : url.tls ? "443" : "80";
  url.host = rest.substr(0, has_port ? colon : std::string_view::npos);
  if (url.host.starts_with('[') && url.host.ends_with(']'))
    url.host = url.host.substr(1, url.host.size() - 2);
  const auto number = parse_decimal(url.port);
  const bool has_space = text.find_first_of(" \r\n\t") != std::string_view::npos;
  if (url.host.empty() || !number || *number > 65535 || has_space) return wrong();
  return url;
}

Result<HttpReply> call_http(const Url& url, std::string_view method, const Headers& headers,
                            std::string_view body, const CallOptions& options) {
  Connection connection;
  auto socket = url.port.empty() ? connect_unix(url.host, options.timeout)
                                 : connect_tcp(url, options.timeout);
  if (!socket) return std::unexpected(socket.error());
  connection.socket = std::move(*socket);
  if (url.tls) RETURN_IF_FAILED(start_tls(connection, url, options.trust));
  std::string request = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", method,
                                    url.path, url.authority());
  for (const auto& [name, value] : headers) request += fmt::format("{}: {}\r\n", name, value);
  request += fmt::format("Content-Length: {}\r\n\r\n{}", body.size(), body);
  RETURN_IF_FAILED(send_all(connection, request));
  const auto reply = receive_all(connection);
  if (!reply) return std::unexpected(reply.error());
  return parse_reply(*reply);
}

}  // namespace stanchion::net
