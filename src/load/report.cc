#include "load/report.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>

namespace stanchion::load {
namespace {

namespace json = boost::json;

double per_second(std::uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

// A client without processor time to spare measures itself.
constexpr double kBusyClient = 0.95;

std::string describe_shape(const Options& o) {
  if (o.workload == Workload::kFdatasync)
    return fmt::format("writes of {} B in {}", o.body_size, o.file);
  std::string text = fmt::format("{} connections", o.connections);
  if (o.workload == Workload::kHttp) return text;
  text += fmt::format(" · batches of {} · bodies of {} B · ", o.batch, o.body_size);
  text += fmt::format("{} {} queue{}", o.queues, o.fifo ? "FIFO" : "standard",
                      o.queues == 1 ? "" : "s");
  if (o.group_count() > 0)
    text += fmt::format(" with {} group{}", o.group_count(), o.group_count() == 1 ? "" : "s");
  if (o.backlog > 0)
    text += fmt::format(" · {} waiting", format_count(static_cast<double>(o.backlog)));
  return text;
}

std::string describe_checks(const Options& o, const Outcome& outcome) {
  const Findings& f = outcome.findings;
  if (!o.uses_queues()) return "";
  std::string text =
      fmt::format("checked: {} sent, {} received", format_count(static_cast<double>(f.sent)),
                  format_count(static_cast<double>(f.received)));
  text += outcome.check_every == 0   ? ", no MD5"
          : outcome.check_every == 1 ? ", every MD5"
                                     : fmt::format(", every {}th MD5", outcome.check_every);
  if (f.drained) text += fmt::format(", {} lost", f.lost);
  text += fmt::format(", {} twice, {} damaged", f.twice, f.damaged);
  if (o.fifo) text += fmt::format(", {} out of order", f.disordered);
  if (f.foreign > 0) text += fmt::format(", {} of another run", f.foreign);
  return text + "\n";
}

json::object latency_of(const Histogram& h) {
  const auto micros = [](Histogram::Nanos n) {
    return std::round(static_cast<double>(n.count()) / 10.0) / 100.0;
  };
  return {{"min", micros(h.min())},
          {"mean", micros(h.mean())},
          {"p50", micros(h.percentile(0.5))},
          {"p90", micros(h.percentile(0.9))},
          {"p99", micros(h.percentile(0.99))},
          {"p999", micros(h.percentile(0.999))},
          {"max", micros(h.max())}};
}

}  // namespace

Op headline(Workload workload) {
  switch (workload) {
    case Workload::kSend:
      return Op::kSend;
    case Workload::kReceive:
      return Op::kReceive;
    case Workload::kDelete:
      return Op::kDelete;
    case Workload::kCycle:
      return Op::kCycle;
    case Workload::kWakeUp:
      return Op::kWakeUp;
    case Workload::kHttp:
      return Op::kRequest;
    case Workload::kFdatasync:
      return Op::kSync;
  }
  return Op::kRequest;
}

std::string format_duration(Histogram::Nanos duration) {
  const auto ns = static_cast<double>(duration.count());
  const auto scaled = [](double value, std::string_view unit) {
    const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f} {}", value, digits, unit);
  };
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 999.5e3) return scaled(ns / 1e3, "µs");
  if (ns < 999.5e6) return scaled(ns / 1e6, "ms");
  return scaled(ns / 1e9, "s");
}

std::string format_count(double value) {
  const std::string digits = fmt::format("{:.0f}", std::max(value, 0.0));
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

std::string to_line(const Progress& progress) {
  std::string line =
      fmt::format("{}: {} messages/s", progress.doing, format_count(progress.messages_per_second));
  if (progress.latency.count() > 0)
    line += fmt::format(" · p50 {} · p99 {}", format_duration(progress.latency.percentile(0.5)),
                        format_duration(progress.latency.percentile(0.99)));
  if (progress.seconds_left) line += fmt::format(" · {:.0f} s left", *progress.seconds_left);
  return line;
}

std::string to_table(const Options& o, const Outcome& outcome) {
  std::string text =
      fmt::format("{} · {} · {}\n\n", name_of(o.workload),
                  o.uses_queues() || o.workload == Workload::kHttp ? o.endpoint : "this disk",
                  describe_shape(o));
  text += fmt::format("{:<12}{:>12}{:>12}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "", "requests/s",
                      "messages/s", "p50", "p90", "p99", "p99.9", "max");
  for (std::size_t i = 0; i < kOpCount; ++i) {
    const OpStats& op = outcome.stats.ops[i];
    if (op.latency.count() == 0) continue;
    // The letter µ takes two bytes and one column, so widths are counted by hand.
    text += fmt::format("{:<12}{:>12}{:>12}", name_of(static_cast<Op>(i)),
                        format_count(per_second(op.latency.count(), outcome.seconds)),
                        format_count(per_second(op.messages, outcome.seconds)));
    for (const double share : {0.5, 0.9, 0.99, 0.999, 1.0}) {
      const std::string cell = format_duration(op.latency.percentile(share));
      const std::size_t columns = cell.size() - (cell.find("µ") == std::string::npos ? 0 : 1);
      text += std::string(10 - std::min<std::size_t>(columns, 9), ' ') + cell;
    }
    text += "\n";
  }
  text += fmt::format("\nmeasured for {:.1f} s{}; the client used {:.0f} % of a core{}\n",
                      outcome.seconds, outcome.interrupted ? ", then interrupted" : "",
                      outcome.client_cpu * 100,
                      outcome.client_cpu > kBusyClient ? ": it may be what limits the result" : "");
  text += describe_checks(o, outcome);
  if (outcome.errors.total() > 0)
    text += fmt::format("ERRORS: {} refused, {} broken connections; the first: {}\n",
                        outcome.errors.refused, outcome.errors.broken, outcome.errors.first);
  if (!outcome.findings.right(o.fifo)) text += fmt::format("WRONG: {}\n", outcome.findings.first);
  return text;
}

std::string to_json(const Options& o, const Outcome& outcome) {
  json::object ops;
  for (std::size_t i = 0; i < kOpCount; ++i) {
    const OpStats& op = outcome.stats.ops[i];
    if (op.latency.count() == 0) continue;
    ops[name_of(static_cast<Op>(i))] =
        json::object{{"requests", op.latency.count()},
                     {"messages", op.messages},
                     {"requests_per_second", per_second(op.latency.count(), outcome.seconds)},
                     {"messages_per_second", per_second(op.messages, outcome.seconds)},
                     {"latency_us", latency_of(op.latency)}};
  }
  const Findings& f = outcome.findings;
  const json::object report{
      {"workload", name_of(o.workload)},
      {"endpoint", o.endpoint},
      {"protocol", o.protocol == Protocol::kJson ? "json" : "query"},
      {"connections", o.connections},
      {"body_size", o.body_size},
      {"batch", o.batch},
      {"queues", o.queues},
      {"fifo", o.fifo},
      {"groups", o.group_count()},
      {"rate", o.rate},
      {"backlog", o.backlog},
      {"seconds", outcome.seconds},
      {"interrupted", outcome.interrupted},
      {"client_cpu", outcome.client_cpu},
      {"result", per_second(outcome.stats[headline(o.workload)].messages, outcome.seconds)},
      {"ops", ops},
      {"checks",
       {{"sent", f.sent},
        {"received", f.received},
        {"twice", f.twice},
        {"foreign", f.foreign},
        {"md5", f.digests},
        {"damaged", f.damaged},
        {"disordered", f.disordered},
        {"drained", f.drained},
        {"lost", f.lost},
        {"first", f.first}}},
      {"errors",
       {{"refused", outcome.errors.refused},
        {"broken", outcome.errors.broken},
        {"first", outcome.errors.first}}},
      {"right", outcome.right(o.fifo)}};
  return json::serialize(report) + "\n";
}

}  // namespace stanchion::load
