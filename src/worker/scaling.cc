#include "worker/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace stanchion::worker {
namespace {

// Of a new figure in the smoothed one: half of a change is known after two looks.
constexpr double kNewShare = 0.3;

double seconds_of(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

LoadSignals LoadWatch::look(const LoadFigures& figures) {
  const bool grows = !first_ && figures.visible > last_backlog_;
  if (grows && growing_ == 0) grown_from_ = last_backlog_;
  growing_ = grows ? std::min(growing_ + 1, options_.growing_looks) : 0;
  first_ = false;
  last_backlog_ = figures.visible;
  const double near = static_cast<double>(options_.in_flight_limit) * options_.in_flight_share;
  return {.arrival_faster = growing_ >= options_.growing_looks &&
                            figures.visible - grown_from_ >= options_.growth_min,
          .in_flight_near_limit = static_cast<double>(figures.in_flight) >= near,
          .too_old = options_.age_max.count() > 0 && figures.oldest > options_.age_max};
}

void ScalingAdvisor::measure_arrival(const LoadFigures& figures) {
  const auto last = std::exchange(last_, figures);
  if (!last || figures.at <= last->at) return;
  const auto held = [](const LoadFigures& f) {
    return static_cast<double>(f.visible) + static_cast<double>(f.in_flight) +
           static_cast<double>(f.completed);
  };
  // The figures of a queue are approximate, and a worker that has ended takes its count with it.
  const double rate =
      std::max(0.0, held(figures) - held(*last)) / seconds_of(figures.at - last->at);
  arrival_ = needs_.size() <= 1 ? rate : arrival_ + kNewShare * (rate - arrival_);
}

std::size_t ScalingAdvisor::needed(const LoadFigures& figures) const {
  const double drain = std::max(1.0, seconds_of(options_.drain_within));
  const double rate = arrival_ / std::clamp(options_.utilisation, 0.05, 1.0) +
                      static_cast<double>(figures.visible) / drain;
  const double workers = std::ceil(rate / std::max(options_.per_worker, 1e-6));
  const double most = static_cast<double>(options_.workers_max);
  return std::max(options_.workers_min, static_cast<std::size_t>(std::min(workers, most)));
}

std::optional<std::size_t> ScalingAdvisor::needed_lately(std::chrono::milliseconds now) const {
  if (needs_.empty() || now - needs_.front().at < options_.shrink_after) return std::nullopt;
  return std::ranges::max_element(needs_, {}, &Need::workers)->workers;
}

ScalingAdvice ScalingAdvisor::advise(const LoadFigures& figures, std::size_t workers) {
  measure_arrival(figures);
  const std::size_t need = needed(figures);
  needs_.push_back({figures.at, need});
  while (needs_.size() > 1 && figures.at - needs_[1].at >= options_.shrink_after)
    needs_.erase(needs_.begin());

  const auto because = [&](const char* what) {
    return fmt::format("{}: {:.1f} messages/s arrive, {} wait", what, arrival_, figures.visible);
  };
  const std::size_t bounded = std::clamp(workers, options_.workers_min, options_.workers_max);
  if (bounded != workers) return {bounded, because("keeps within its bounds")};
  if (need > workers) {
    const double most = std::max(static_cast<double>(workers) * options_.growth_max,
                                 static_cast<double>(workers) + 1);
    return {std::min(need, static_cast<std::size_t>(most)), because("grows")};
  }
  const auto lately = needed_lately(figures.at);
  if (lately &&
      static_cast<double>(*lately) <= static_cast<double>(workers) * options_.shrink_share)
    return {*lately, because("shrinks")};
  return {workers, because("stays")};
}

}  // namespace stanchion::worker
