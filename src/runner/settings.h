// What the command line of `stanchion work` says.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace stanchion::runner {

struct WorkSettings {
  std::vector<std::string> queue_urls;
  std::string poison_queue_url;
  // One of these handles the messages.
  std::string exec;
  std::string lines;
  std::string http;
  std::string lambda;

  std::size_t concurrency = 10;
  int visibility = 0;  // Seconds, as all times here.
  int timeout = 0;
  int reject_code = 0;
  std::string reject_to;
  int max_age = 0;
  std::string expired_to;

  // Of --http.
  std::string mime_type = "application/json";
  int error_visibility = 2;
  std::string cron;
  std::string cron_queue_url;
  std::string cron_key;

  // Of --lambda.
  std::size_t batch_size = 10;
  int batch_window = 0;
  std::vector<std::string> filters;
  bool partial_response = true;

  std::string metrics;
  std::string log;  // "json", "text", "view", or empty.
};

// What cannot work, in words; empty if nothing.
std::string mistake_in(const WorkSettings& settings);

}  // namespace stanchion::runner
