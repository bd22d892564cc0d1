#include "cli/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/exit_codes.h"
#include "base/printable.h"
#include "base/terminal.h"
#include "cli/pace.h"
#include "cli/page_tokens.h"
#include "cli/program.h"
#include "cli/trust_flags.h"
#include "model/ids.h"
#include "net/http_client.h"
#include "os/clock.h"
#include "settings/settings.h"
#include "settings/toml_text.h"
#include "wire/sigv4.h"

namespace stanchion::cli {
namespace {

namespace json = boost::json;

// Far more than the queues of an account need: of their URLs, and of what is printed.
constexpr std::size_t kBytesMax = std::size_t{512} << 20;
constexpr std::chrono::milliseconds kCallTimeMax(30'000);

std::chrono::steady_clock::time_point steady_now() {
  return std::chrono::steady_clock::now();
}

class Caller {
 public:
  Caller(const ExportSettings& settings, net::Url url)
      : settings_(settings),
        url_(std::move(url)),
        client_({.trust = settings.trust}),
        pace_(steady_now()) {}

  // A queue was read.
  void gain() { pace_.gain(steady_now()); }

  Result<json::object> call(std::string_view action, const json::object& input) {
    const std::string body = json::serialize(input);
    net::Headers headers{{"Content-Type", "application/x-amz-json-1.0"},
                         {"X-Amz-Target", fmt::format("AmazonSQS.{}", action)}};
    if (!settings_.access_key_id.empty()) sign_call(headers, body);
    const auto left = std::min(pace_.left(steady_now()), kCallTimeMax);
    if (left.count() <= 0)
      return fail(fmt::format(
          "{}: the server answers too slowly: it must return a queue a second on average",
          settings_.endpoint));
    // The requests of an export change nothing, so they may be repeated.
    const auto reply = client_.call({.method = "POST",
                                     .url = url_,
                                     .headers = std::move(headers),
                                     .body = body,
                                     .repeatable = true,
                                     .timeout = left});
    if (!reply) return fail(fmt::format("{}: {}", settings_.endpoint, reply.error().message));
    json::error_code error;
    json::value value = json::parse(reply->body, error);
    if (error || !value.is_object())
      return fail(fmt::format("{}: {} was not answered with JSON", settings_.endpoint, action));
    json::object object = std::move(value.as_object());
    if (reply->status != 200) {
      const json::value* message = object.if_contains("message");
      return fail(fmt::format("{}: {}: {}", settings_.endpoint, action,
                              message != nullptr && message->is_string()
                                  ? printable(std::string_view(message->as_string()))
                                  : "refused"));
    }
    return object;
  }

 private:
  void sign_call(net::Headers& headers, std::string_view body) {
    const std::string host = url_.authority();
    std::vector<wire::HeaderView> views{{"Host", host}};
    for (const auto& [name, value] : headers) views.emplace_back(name, value);
    const wire::HttpCall call{"POST", url_.path, views, body};
    os::SystemClock clock;
    for (auto& header : wire::sign(call,
                                   {.access_key_id = settings_.access_key_id,
                                   .secret = settings_.secret,
                                   .session_token = settings_.session_token,
                                   .region = settings_.region},
                                   clock.now()))
      headers.push_back(std::move(header));
  }

  const ExportSettings& settings_;
  const net::Url url_;
  net::HttpClient client_;
  Pace pace_;
};

StringMap string_map(const json::object& reply, std::string_view name) {
  StringMap map;
  const json::value* object = reply.if_contains(name);
  if (object == nullptr || !object->is_object()) return map;
  for (const auto& member : object->as_object())
    if (member.value().is_string())
      map[std::string(member.key())] = std::string(member.value().as_string());
  return map;
}

Result<std::vector<std::string>> list_urls(Caller& caller) {
  std::vector<std::string> urls;
  PageTokens tokens;
  std::size_t bytes = 0;
  json::object input{{"MaxResults", 1000}};
  while (true) {
    auto page = caller.call("ListQueues", input);
    if (!page) return std::unexpected(page.error());
    const std::size_t before = urls.size();
    if (const json::value* list = page->if_contains("QueueUrls"); list && list->is_array())
      for (const json::value& url : list->as_array())
        if (url.is_string())
          bytes += sizeof(std::string) + urls.emplace_back(url.as_string()).size();
    const json::value* next = page->if_contains("NextToken");
    if (next == nullptr || !next->is_string() || next->as_string().empty()) return urls;
    if (bytes > kBytesMax) return fail("the server's list of queues does not end");
    std::string why = tokens.endless(std::string(next->as_string()), urls.size() - before);
    if (!why.empty()) return fail(std::move(why));
    input["NextToken"] = *next;
  }
}

// The redrive policy in the form of the settings file, where that form can express it.
void take_redrive(settings::QueueSettings& queue, const QueueRef& self) {
  const auto policy = queue.attributes.find("RedrivePolicy");
  if (policy == queue.attributes.end()) return;
  json::error_code error;
  const json::value value = json::parse(policy->second, error);
  if (error || !value.is_object()) return;
  const json::value* target = value.as_object().if_contains("deadLetterTargetArn");
  const json::value* count = value.as_object().if_contains("maxReceiveCount");
  if (target == nullptr || !target->is_string() || count == nullptr || !count->is_int64()) return;
  const auto ref = parse_queue_arn(std::string_view(target->as_string()));
  if (!ref || ref->account != self.account || ref->region != self.region) return;
  queue.redrive = settings::RedriveSettings{ref->name, count->as_int64()};
  queue.attributes.erase(policy);
}

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

struct Exported {
  QueueRef ref;
  settings::QueueSettings queue;
};

Result<Exported> read_queue(Caller& caller, const std::string& url) {
  auto attributes = caller.call("GetQueueAttributes",
                                {{"QueueUrl", url}, {"AttributeNames", json::array{"All"}}});
  if (!attributes) return std::unexpected(attributes.error());
  auto tags = caller.call("ListQueueTags", {{"QueueUrl", url}});
  if (!tags) return std::unexpected(tags.error());
  Exported out;
  out.queue.attributes = string_map(*attributes, "Attributes");
  out.queue.tags = string_map(*tags, "Tags");
  const auto ref = parse_queue_arn(out.queue.attributes["QueueArn"]);
  if (!ref) return fail(fmt::format("{}: has no readable ARN", printable(url)));
  out.ref = *ref;
  out.queue.name = ref->name;
  // Attributes that are counts or follow from the name are not settings.
  for (const char* name :
       {"QueueArn", "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesDelayed", "CreatedTimestamp", "LastModifiedTimestamp",
        "FifoQueue"})
    out.queue.attributes.erase(name);
  take_redrive(out.queue, out.ref);
  return out;
}

}  // namespace

Result<std::string> export_queues(const ExportSettings& settings) {
  auto url = net::parse_url(settings.endpoint);
  if (!url) return fail(fmt::format("--endpoint: {}", url.error().message));
  Caller caller(settings, std::move(*url));
  const auto urls = list_urls(caller);
  if (!urls) return std::unexpected(urls.error());
  std::string out;
  for (const std::string& queue_url : *urls) {
    const auto exported = read_queue(caller, queue_url);
    if (!exported) return std::unexpected(exported.error());
    caller.gain();
    if (out.empty())
      out = fmt::format("# The queues of account {} in region {}.\n",
                        printable(exported->ref.account), printable(exported->ref.region));
    out += "\n" + settings::to_toml(exported->queue);
    if (out.size() > kBytesMax)
      return fail(fmt::format("the queues have more than {} bytes of attributes", kBytesMax));
  }
  return out.empty() ? "# There are no queues.\n" : out;
}

void add_export(Program& program) {
  const auto settings = std::make_shared<ExportSettings>();
  Command command =
      program.add("export", "Print the queues of a running server as TOML", [settings] {
        settings->access_key_id = from_environment("AWS_ACCESS_KEY_ID");
        settings->secret = from_environment("AWS_SECRET_ACCESS_KEY");
        settings->session_token = from_environment("AWS_SESSION_TOKEN");
        const auto text = export_queues(*settings);
        if (!text) return give_up(text.error().message, kExitFailed);
        fmt::print("{}", *text);
        return kExitOk;
      });
  command.option("--endpoint", settings->endpoint, "The server: http://, https:// or unix:/path")
      .with_default()
      .value("URL");
  command.option("--region", settings->region, "The region to sign for")
      .with_default()
      .value("REGION");
  add_trust_flags(command, settings->trust);
  command.notes(
      "Calls are signed with $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY and\n"
      "$AWS_SESSION_TOKEN, if they are set. The output is [[queue]] tables for\n"
      "stanchion.toml. Example:\n"
      "  stanchion export --endpoint https://queues.example.com --ca ca.pem > queues.toml");
}

}  // namespace stanchion::cli
