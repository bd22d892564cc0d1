#include "server/server.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "backup/backup.h"
#include "backup/online_backup.h"
#include "base/exit_codes.h"
#include "base/terminal.h"
#include "broker/background.h"
#include "broker/broker.h"
#include "console/queue_events.h"
#include "console/server_page.h"
#include "console/sign_in.h"
#include "fleet_node/kafka_node.h"
#include "log/log.h"
#include "monitoring/cloudwatch_endpoint.h"
#include "monitoring/history_keeper.h"
#include "monitoring/metrics_handler.h"
#include "monitoring/process_figures.h"
#include "net/http_server.h"
#include "net/reactor.h"
#include "net/tls.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "os/timekeeper.h"
#include "os/virtual_clock.h"
#include "server/clock_report.h"
#include "server/control_handler.h"
#include "server/greeting.h"
#include "server/http_dispatcher.h"
#include "server/kafka_node_options.h"
#include "server/options.h"
#include "server/own_storage.h"
#include "server/service_manager.h"
#include "service/authenticator.h"
#include "service/call_figures.h"
#include "service/call_guard.h"
#include "service/reactor_loop.h"
#include "service/sqs_endpoint.h"
#include "settings/accounts.h"
#include "settings/provision.h"
#include "settings/secret_files.h"

namespace stanchion::server {
namespace {

// A stop takes ten seconds at most: this much for draining connections before they are cut, longer
// than any exchange should last …
constexpr std::chrono::seconds kDrainTimeMax(8);
// … and this much for the last minute's figures, which can be done without if it must be.
constexpr std::chrono::seconds kHistoryTimeMax(1);

// How long a node that stops waits for others to take its shards.
constexpr std::chrono::seconds kGiveAwayTimeMax(15);

// A control request is a path and a few words.
constexpr std::size_t kControlBodyMax = 16 << 10;
constexpr std::size_t kControlMemoryMax = 1 << 20;
constexpr std::size_t kControlConnectionsMax = 16;

// Each answer that is on its way takes a part of the page.
constexpr std::size_t kMetricsMemoryMax = std::size_t{16} << 20;
constexpr std::size_t kMetricsConnectionsMax = 64;

int report(const Failure& failure) {
  complain(failure.message);
  return kExitFailed;
}

// Descriptors that are not for connections: listening sockets, loops, logs, directories and tables
// of the history; and for each shard the segments of its journal, the tables of its store that are
// open or being merged, and a backup under way.
constexpr std::uint64_t kFilesAtLeast = 224;
constexpr std::uint64_t kFilesPerShard = 192;
// With fewer connections than these a server is useless.
constexpr std::uint64_t kConnectionsAtLeast = 16;

// A failed journal or store means that no thread may acknowledge anything from this instant on: so
// no destructors run, and nothing is waited for.
[[noreturn]] void end_after_failure(log::Log& log, const Failure& failure) {
  log.error(
      fmt::format("storage failed: {}. Stopping, so that nothing is acknowledged that is not "
                  "durable. Fix the cause, then restart.",
                  failure.message));
  log.flush();
  _exit(kExitJournalFailed);
}

sigset_t awaited_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  return signals;
}

// Loading a large backlog takes a while, and until it has ended there is nothing to finish: a stop
// then ends the process at once.
void stop_while_starting(const std::atomic<bool>& has_started) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  const timespec moment{.tv_sec = 0, .tv_nsec = 50'000'000};
  while (!has_started) {
    const int signal = sigtimedwait(&signals, nullptr, &moment);
    if (signal <= 0) continue;
    if (!has_started) _exit(kExitOk);
    ::kill(::getpid(), signal);  // For later waits.
    return;
  }
}

// Everything that runs, in the order in which it is created; destroyed in the opposite order.
class Server {
 public:
  Server(const settings::Settings& settings, const settings::Sources& sources)
      : settings_(settings),
        sources_(sources),
        log_(settings.log),
        time_(system_clock_, boot_clock_,
              [this](const os::ClockNews& news) { log_.warning(describe(news)); }),
        virtual_clock_(system_clock_, time_),
        pool_({.reactors = settings.server.threads}),
        storage_(settings_.server, entropy_, system_clock_,
                 [this](const std::string& text) { log_.warning(text); }),
        calls_(pool_.size()),
        authenticator_({settings.server.account, settings.server.region, settings.server.regions,
                        settings.server.trust_forwarded, make_page_guard(settings.server)},
                       pool_.size(), system_clock_) {}

  ~Server() {
    if (backup_) backup_->stop();
    if (control_) control_->stop();
    if (metrics_) metrics_->stop();
    if (http_) http_->stop();
    if (node_) node_->stop();
    pool_.stop();
    if (metrics_handler_) metrics_handler_->stop();
  }

  Status start();
  void print_ready(double millis);
  Status run_until_told_to_stop(const sigset_t& signals);

 private:
  Status load_tls();
  bool is_in_a_fleet() const { return !settings_.fleet.name.empty(); }
  Status open_broker();
  Status open_member();
  void watch_damage();
  Status start_broker();
  Reply ask(Request request);
  Status make_queues();
  void open_control_handler();
  void make_history();
  Status open_metrics_handler();
  monitoring::ServerFigures look_at_server();
  void log_holdings();
  Status begin_time();
  void reload();
  void drain();
  net::HttpLimits http_limits();

  const settings::Settings settings_;
  const settings::Sources sources_;
  log::Log log_;
  os::SystemClock system_clock_;
  os::BootClock boot_clock_;
  os::Timekeeper time_;
  os::VirtualClock virtual_clock_;
  os::SystemEntropy entropy_;
  std::shared_ptr<net::TlsCredentials> tls_;
  net::ReactorPool pool_;
  OwnStorage storage_;
  std::unique_ptr<broker::Broker> own_broker_;
  std::unique_ptr<fleet_node::KafkaNode> node_;  // Of a fleet; then there is no own broker.
  broker::Broker* broker_ = nullptr;             // Whichever there is.
  std::vector<std::unique_ptr<service::ReactorLoop>> loops_;
  service::CallFigures calls_;
  std::unique_ptr<monitoring::HistoryKeeper> history_;
  std::unique_ptr<monitoring::MetricsHandler> metrics_handler_;
  std::unique_ptr<console::QueueEvents> queue_events_;
  std::unique_ptr<console::ServerPage> server_page_;
  std::unique_ptr<console::SignIn> sign_in_;
  std::unique_ptr<console::ConsoleHandler> console_handler_;
  service::Authenticator authenticator_;
  std::unique_ptr<service::SqsEndpoint> endpoint_;
  std::unique_ptr<monitoring::CloudwatchEndpoint> cloudwatch_;
  std::unique_ptr<HttpDispatcher> dispatcher_;
  std::unique_ptr<net::HttpServer> http_;
  std::atomic<bool> http_started_{false};  // Others than the main thread may look at http_ then.
  std::unique_ptr<net::HttpServer> metrics_;
  // Ends before the shards, loops, handlers and servers that it works for or looks at.
  broker::BackgroundThreads background_;
  std::unique_ptr<backup::OnlineBackup> backup_;
  std::unique_ptr<ControlHandler> control_handler_;
  std::unique_ptr<net::HttpServer> control_;
};

Status Server::load_tls() {
  if (settings_.tls.certificate.empty()) return {};
  auto loaded = net::TlsCredentials::load({settings_.tls.certificate, settings_.tls.key});
  if (!loaded) return fail(fmt::format("tls: {}", loaded.error().message));
  tls_ = std::move(*loaded);
  return {};
}

Status Server::open_broker() {
  const settings::ServerSettings& server = settings_.server;
  const auto threads = static_cast<std::uint32_t>(pool_.size());
  const auto shards = storage_.open_directory(server.shards != 0 ? server.shards : threads);
  if (!shards) return std::unexpected(shards.error());
  auto broker = broker::Broker::open(
      {.shards = *shards,
       .strict = server.strict,
       .queues = queue_limits(settings_.limits),
       .keeping = {.memory = server.evict_beyond(),
                   .left_free = storage_.left_free(),
                   .account_share = settings_.limits.memory_share_per_account},
       .memory = {.receive_bytes = settings_.limits.receive_bytes()}},
      [this](ShardIndex shard) { return storage_.open(shard); }, time_, entropy_);
  if (!broker) return std::unexpected(broker.error());
  own_broker_ = std::move(*broker);
  broker_ = own_broker_.get();
  log_holdings();
  return begin_time();
}

Status Server::open_member() {
  auto options = to_kafka_node_options(settings_);
  if (!options) return std::unexpected(std::move(options).error());
  // A shard has the time of its records or of this machine, whichever is later.
  time_.begin(Instant());
  auto node = fleet_node::KafkaNode::open(
      std::move(*options), time_, entropy_, background_,
      {.info = [this](std::string_view text) { log_.info(text); },
       .warning = [this](std::string_view text) { log_.warning(text); },
       .failed = [this](const Failure& failure) { end_after_failure(log_, failure); },
       .unpack_guard =
           [this](std::string_view packed) {
             return service::CallGuard::unpack(authenticator_, virtual_clock_, packed);
           }});
  if (!node) return std::unexpected(std::move(node).error());
  node_ = std::move(*node);
  broker_ = &node_->broker();
  return {};
}

// Before the broker starts, while this thread may still read the shards.
void Server::log_holdings() {
  engine::Holdings all;
  for (std::uint32_t i = 0; i < broker_->shard_count(); ++i) {
    const engine::Holdings held = broker_->shard(ShardIndex(i)).engine().holdings();
    all.queues += held.queues;
    all.in_memory += held.in_memory;
    all.records += held.records;
    all.cold += held.cold;
    all.leaving += held.leaving;
  }
  if (all.queues == 0) return;
  log_.info(
      fmt::format("loaded {} queues: {} messages on disk only, {} in memory ({} pinned: delayed, "
                  "in flight or returned), {} on their way to another queue",
                  all.queues, all.cold, all.in_memory, all.records, all.leaving));
}

// The effect of a wrong clock at a start cannot be undone, so the warning comes before it.
Status Server::begin_time() {
  const Instant last = broker_->last_recorded();
  const Duration gap = time_.begin(last);
  if (last == Instant()) return {};
  const Duration gap_max = settings_.clock.max_jump_forward;
  if (gap_max > Duration(0) && gap > gap_max) return fail(refuse_gap(last, gap, gap_max));
  if (const auto text = describe_gap(last, gap)) log_.warning(*text);
  return {};
}

// Without it everything works except backups while the server runs, so the start goes on.
void Server::open_control_handler() {
  if (settings_.server.in_memory) return;
  backup_ = node_ ? make_backup(*node_) : storage_.make_backup(*broker_);
  control_handler_ = std::make_unique<ControlHandler>(
      [this](std::string to, ControlHandler::Done done) {
        backup_->begin(std::move(to), std::move(done));
      },
      loops_);
  const std::string path = backup::control_socket(settings_.server.data);
  auto control = net::HttpServer::start(pool_,
                                        {.unix_path = path,
                                         .limits = {.body_bytes_max = kControlBodyMax,
                                                    .held_bytes_max = kControlMemoryMax,
                                                    .connections_max = kControlConnectionsMax,
                                                    .silent_give_way = true}},
                                        *control_handler_);
  if (control && ::chmod(path.c_str(), S_IRUSR | S_IWUSR) == 0) {
    control_ = std::move(*control);
    return;
  }
  log_.warning(fmt::format("no backups while the server runs: {}",
                           control ? "cannot protect " + path : control.error().message));
}

Status Server::open_metrics_handler() {
  if (settings_.metrics.listen.empty()) return {};
  const auto address = settings::parse_listen(settings_.metrics.listen);
  if (!address) return std::unexpected(address.error());
  auto listening = net::HttpServer::start(pool_,
                                          {.host = address->host,
                                           .port = address->port,
                                           .limits = {.body_bytes_max = kControlBodyMax,
                                                      .held_bytes_max = kMetricsMemoryMax,
                                                      .connections_max = kMetricsConnectionsMax},
                                           .tls = tls_},
                                          *metrics_handler_);
  if (!listening) return fail(fmt::format("metrics.listen: {}", listening.error().message));
  metrics_ = std::move(*listening);
  return {};
}

// Opened when the server runs, in the background: a start does not wait for it.
void Server::make_history() {
  const settings::ServerSettings& server = settings_.server;
  history_ = std::make_unique<monitoring::HistoryKeeper>(
      server.in_memory ? "" : server.data + "/metrics", server.history_bytes(), *broker_,
      background_, time_,
      [this](monitoring::HistoryKeeper::Weight weight, const std::string& text) {
        weight == monitoring::HistoryKeeper::Weight::kError ? log_.error(text) : log_.warning(text);
      });
  cloudwatch_ = std::make_unique<monitoring::CloudwatchEndpoint>(*history_, authenticator_, time_,
                                                                 loops_, calls_, log_.access_log());
}

// On the thread that makes a page of metrics.
monitoring::ServerFigures Server::look_at_server() {
  return {.version = STANCHION_VERSION,
          .memory_budget = settings_.server.memory.value,
          .held_budget = settings_.limits.memory.value,
          .ahead_of_wall_clock = time_.difference() + time_.advanced(),
          .damaged_queues = broker_->damaged_queues(),
          .http = http_started_ ? http_->stats() : net::HttpStats{},
          .calls = calls_.sum(),
          .process = monitoring::look_at_process(),
          .fleet = node_ ? std::optional(to_fleet_figures(*node_)) : std::nullopt};
}

void Server::watch_damage() {
  broker_->watch_damage([this](const QueueRef& queue, const Failure& why) {
    log_.error(
        fmt::format("queue {} is set aside, because messages of it cannot be read: {}. All other "
                    "queues are served. Repair the directory, restore a backup, or purge or delete "
                    "the queue.",
                    queue.arn(), why.message));
  });
}

Status Server::start_broker() {
  broker_->limit_answers(settings_.limits.answer_bytes());
  watch_damage();
  std::vector<broker::Loop*> loop_pointers;
  for (const auto& loop : loops_) loop_pointers.push_back(loop.get());
  if (node_) return node_->start(pool_, std::move(loop_pointers));
  std::promise<void> started;
  broker_->start(
      std::move(loop_pointers), background_, [&] { started.set_value(); },
      [this](const Failure& failure) { end_after_failure(log_, failure); });
  started.get_future().wait();
  return {};
}

Status Server::start() {
  for (const std::string& warning : settings::exposed_secrets(settings_)) log_.warning(warning);
  RETURN_IF_FAILED(load_tls());
  RETURN_IF_FAILED(is_in_a_fleet() ? open_member() : open_broker());
  for (std::size_t i = 0; i < pool_.size(); ++i)
    loops_.push_back(std::make_unique<service::ReactorLoop>(pool_[i]));
  authenticator_.set_keys(settings::make_key_ring(settings_));
  const settings::ServerSettings& server = settings_.server;
  endpoint_ = std::make_unique<service::SqsEndpoint>(
      service::EndpointOptions{server.public_url, server.trust_forwarded,
                               server.regions ? "" : server.region, server.strict,
                               [this](const std::string& text) { log_.warning(text); }},
      *broker_, authenticator_, virtual_clock_, loops_, calls_, log_.access_log());
  make_history();
  metrics_handler_ = std::make_unique<monitoring::MetricsHandler>(
      monitoring::MetricsOptions{settings_.metrics.queues, settings_.metrics.token,
                                 settings_.metrics.queues_per_account == 0
                                     ? broker::kAllQueues
                                     : settings_.metrics.queues_per_account},
      make_page_guard(server), *broker_, background_, loops_, [this] { return look_at_server(); },
      [this] { return authenticator_.has_keys(); });
  queue_events_ = std::make_unique<console::QueueEvents>(*broker_, background_, time_, loops_);
  server_page_ = std::make_unique<console::ServerPage>(
      *broker_, background_, loops_, [this] { return look_at_server(); }, rows_of(settings_));
  sign_in_ =
      std::make_unique<console::SignIn>(authenticator_, loops_, server.trust_forwarded,
                                        [this](const std::string& text) { log_.warning(text); });
  console_handler_ = std::make_unique<console::ConsoleHandler>(
      console::ConsoleHandler::Routes{*endpoint_, *cloudwatch_, *queue_events_, *server_page_},
      *sign_in_, authenticator_, entropy_, time_, name_of_machine());
  using Movers = HttpDispatcher::Movers;
  const Movers movers = !server.virtual_time ? Movers::kNobody
                        : server.insecure    ? Movers::kAnyone
                                             : Movers::kThisMachine;
  dispatcher_ = std::make_unique<HttpDispatcher>(
      HttpDispatcher::Routes{*endpoint_, *cloudwatch_, *metrics_handler_, *console_handler_,
                             *history_},
      *broker_, time_, movers, make_page_guard(server), loops_,
      [this] { return node_ ? to_readiness(*node_) : HttpDispatcher::Readiness(); },
      [this] { return authenticator_.has_keys(); });
  RETURN_IF_FAILED(pool_.start());
  RETURN_IF_FAILED(start_broker());
  history_->start(*loops_.front());
  // In a fleet others may have to begin as well before anybody can make a queue.
  if (!node_) RETURN_IF_FAILED(make_queues());
  auto http = net::HttpServer::start(pool_,
                                     {.host = server.listen.host,
                                      .port = server.listen.port,
                                      .unix_path = server.unix_socket,
                                      .limits = http_limits(),
                                      .tls = tls_},
                                     *dispatcher_);
  if (!http) return std::unexpected(http.error());
  http_ = std::move(*http);
  http_started_ = true;
  endpoint_->set_port(http_->port());
  RETURN_IF_FAILED(open_metrics_handler());
  open_control_handler();
  if (node_) RETURN_IF_FAILED(make_queues());
  if (!settings_.file.empty())
    log_.info(fmt::format("read {}: {} accounts, {} queues", settings_.file,
                          settings_.accounts.size(), settings_.queues.size()));
  return {};
}

// As set, but with fewer connections if the limit of open files would leave none for the data: a
// checkpoint or a segment that cannot be opened is worse than a refused connection.
net::HttpLimits Server::http_limits() {
  settings::LimitSettings limits = settings_.limits;
  const std::uint64_t files = open_files_limit();
  const std::uint64_t kept = kFilesAtLeast + kFilesPerShard * broker_->shard_count();
  const std::uint64_t left = files > kept ? files - kept : 0;
  if (left < limits.connections) {
    const auto fewer =
        static_cast<std::uint32_t>(std::max<std::uint64_t>(left, kConnectionsAtLeast));
    // Nobody asked for the default, so there is no warning.
    if (limits.connections != settings::LimitSettings{}.connections)
      log_.warning(
          fmt::format("at most {} connections instead of {}: the limit of open files is {}, and {} "
                      "of them are reserved for the data",
                      fewer, limits.connections, files, kept));
    limits.connections = fewer;
  }
  return to_http_limits(limits);
}

// Called on the main thread, while the loops run.
Reply Server::ask(Request request) {
  std::promise<Reply> promise;
  broker::Loop& loop = *loops_.front();
  loop.post([this, &loop, &promise, request = std::move(request)]() mutable {
    broker_->submit(loop, std::move(request),
                    [&promise](Reply reply) { promise.set_value(std::move(reply)); });
  });
  return promise.get_future().get();
}

Status Server::make_queues() {
  if (settings_.queues.empty()) return {};
  const auto made = settings::provision_queues(
      settings_, [this](Request request) { return ask(std::move(request)); });
  if (!made) return std::unexpected(made.error());
  log_.info(
      fmt::format("queues of the settings: {} created, {} changed", made->created, made->changed));
  return {};
}

void Server::print_ready(double millis) {
  const settings::ServerSettings& server = settings_.server;
  const bool v6 = server.listen.host.find(':') != std::string::npos;
  const std::string url =
      !server.unix_socket.empty()
          ? "unix:" + server.unix_socket
          : fmt::format("{}://{}:{}", tls_ ? "https" : "http",
                        v6 ? "[" + server.listen.host + "]" : server.listen.host, http_->port());
  const std::uint32_t shards = broker_->shard_count();
  announce_if_taken(fmt::format(
      "stanchion {} · {}{} · {} shard{}", STANCHION_VERSION,
      node_ ? fmt::format("node {} of the fleet {} · ", settings_.fleet.node, settings_.fleet.name)
            : "",
      server.in_memory ? "in memory, nothing survives a stop" : "data in " + server.data, shards,
      shards == 1 ? "" : "s"));
  announce_if_taken("try: " + line_to_try(settings_, server.unix_socket.empty() ? http_->port() : 0,
                                          name_of_this_program(), system_clock_.now()));
  announce_if_taken(fmt::format("ready {} after {:.0f} ms", url, millis));
}

// Applies accounts and certificate; if anything is wrong, everything stays as it is.
void Server::reload() {
  const settings::Loaded loaded = settings::load_settings(sources_);
  for (const std::string& problem : loaded.problems) log_.error(problem);
  if (!loaded.problems.empty())
    return log_.error("not reloaded: the current settings stay in force");
  // Without any key everybody would be let in, which is too much for a mistake in a file.
  if (loaded.settings.accounts.empty() && authenticator_.has_keys())
    return log_.error("not reloaded: removing all accounts needs a restart");
  if (tls_)
    if (const Status reloaded = tls_->reload(); !reloaded)
      return log_.error(fmt::format("not reloaded: {}", reloaded.error().message));
  for (const std::string& warning : settings::exposed_secrets(loaded.settings))
    log_.warning(warning);
  const auto ring = settings::make_key_ring(loaded.settings);
  authenticator_.set_keys(ring);
  log_.info(fmt::format("reloaded: {} accounts with {} keys{}", loaded.settings.accounts.size(),
                        ring->size(), tls_ ? ", the certificate" : ""));
  for (const std::string& name : settings::differences(settings_, loaded.settings))
    log_.warning(fmt::format("{} changed, which takes effect with a restart", name));
}

// Lets calls under way finish, so that every acknowledged request is also answered. Whoever waits to
// read the history is turned away: hundreds of such calls may take longer than a stop.
void Server::drain() {
  history_->stop_answering();
  broker_->drain();
  auto drained = std::make_shared<std::promise<void>>();
  auto done = drained->get_future();
  http_->drain([drained] { drained->set_value(); });
  done.wait_for(kDrainTimeMax);
}

Status Server::run_until_told_to_stop(const sigset_t& signals) {
  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && signal == SIGHUP) reload();
  announce_if_taken("stopping");
  notify_service_manager("STOPPING=1");
  dispatcher_->set_draining();
  if (backup_) backup_->stop();
  // While they are given away, this node still answers and passes requests on.
  if (node_) node_->give_shards_away(kGiveAwayTimeMax);
  drain();
  history_->finish(kHistoryTimeMax);
  if (control_) control_->stop();
  if (metrics_) metrics_->stop();
  http_->stop();
  if (node_) node_->stop();
  pool_.stop();
  const Status closed = broker_->close();
  log_.flush();  // What follows ends the process at once.
  return closed;
}

}  // namespace

int serve(const settings::Settings& settings, const settings::Sources& sources) {
  const auto began = std::chrono::steady_clock::now();
  // Blocked before any thread starts, so that only the wait below receives them.
  const sigset_t signals = awaited_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // A file that may not grow (ulimit -f) is reported like a disk that fails.
  ::signal(SIGXFSZ, SIG_IGN);
  raise_open_files_limit();

  Server server(settings, sources);
  const auto has_started = std::make_shared<std::atomic<bool>>(false);
  std::thread([has_started] { stop_while_starting(*has_started); }).detach();
  const Status started = server.start();
  *has_started = true;
  if (!started) return report(started.error());
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  server.print_ready(took.count());
  notify_service_manager("READY=1");
  if (const Status ended = server.run_until_told_to_stop(signals); !ended)
    return report(ended.error());
  // The journal has everything. Waiting for a checkpoint under way, or freeing a large backlog in
  // memory, would only make the stop take longer; the next start removes what an unfinished
  // checkpoint leaves.
  std::fflush(nullptr);
  _exit(kExitOk);
}

}  // namespace stanchion::server
