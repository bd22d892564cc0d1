#include "wire/cloudwatch_encode.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "wire/cbor.h"
#include "wire/escape.h"
#include "wire/timestamp.h"

namespace stanchion::wire {
namespace {

using namespace cloudwatch;

constexpr std::string_view kJsonType = "application/x-amz-json-1.0";
constexpr std::string_view kXmlType = "text/xml";
constexpr std::string_view kCborType = "application/cbor";
constexpr std::string_view kXmlNamespace =
    " xmlns=\"http://monitoring.amazonaws.com/doc/2010-08-01/\">";

// Three writers with one interface. A list that is empty is written, because callers look into it:
//
//   member(name, value)        a text, a number, or a time
//   list(name, items, each)    each(item) writes one element, by element() or structure()
//   element(value)
//   structure(write)           write() writes the members

class JsonAnswer {
 public:
  explicit JsonAnswer(std::string& out) : out_(out) {}

  template <class T>
  void member(std::string_view name, const T& value) {
    key(name);
    write(value);
  }
  template <class Items, class Each>
  void list(std::string_view name, const Items& items, const Each& each) {
    key(name);
    open('[');
    for (const auto& item : items) each(item);
    close(']');
  }
  template <class T>
  void element(const T& value) {
    comma();
    write(value);
  }
  template <class Write>
  void structure(const Write& write_members) {
    comma();
    open('{');
    write_members();
    close('}');
  }
  void map(std::string_view name, const std::vector<std::pair<std::string, double>>& entries) {
    key(name);
    open('{');
    for (const auto& [entry, value] : entries) member(entry, value);
    close('}');
  }

 private:
  void write(std::string_view value) {
    out_ += '"';
    append_json_escaped(out_, value);
    out_ += '"';
  }
  void write(double value) { out_ += fmt::format("{}", value); }
  void write(Instant at) {
    const std::int64_t millis = to_millis(at);
    out_ += millis % 1'000 == 0 ? fmt::format("{}", millis / 1'000)
                                : fmt::format("{}.{:03}", millis / 1'000, millis % 1'000);
  }
  void key(std::string_view name) {
    comma();
    write(name);
    out_ += ':';
  }
  void comma() {
    if (!first_) out_ += ',';
    first_ = false;
  }
  void open(char bracket) {
    out_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    out_ += bracket;
    first_ = false;
  }

  std::string& out_;
  bool first_ = true;
};

class XmlAnswer {
 public:
  explicit XmlAnswer(std::string& out) : out_(out) {}

  template <class T>
  void member(std::string_view name, const T& value) {
    open(name);
    write(value);
    close(name);
  }
  template <class Items, class Each>
  void list(std::string_view name, const Items& items, const Each& each) {
    open(name);
    for (const auto& item : items) each(item);
    close(name);
  }
  template <class T>
  void element(const T& value) {
    member("member", value);
  }
  template <class Write>
  void structure(const Write& write_members) {
    open("member");
    write_members();
    close("member");
  }
  void map(std::string_view name, const std::vector<std::pair<std::string, double>>& entries) {
    open(name);
    for (const auto& [entry, value] : entries) {
      open("entry");
      member("key", std::string_view(entry));
      member("value", value);
      close("entry");
    }
    close(name);
  }
  void open(std::string_view name) { out_.append("<").append(name).append(">"); }
  void close(std::string_view name) { out_.append("</").append(name).append(">"); }

 private:
  void write(std::string_view value) { append_xml_escaped(out_, value); }
  // Whole numbers are written as 5.0, as AWS does.
  void write(double value) {
    const bool short_and_whole = std::trunc(value) == value && std::abs(value) < 1e15;
    out_ += short_and_whole ? fmt::format("{:.1f}", value) : fmt::format("{}", value);
  }
  void write(Instant at) { out_ += format_date_time(at); }

  std::string& out_;
};

class CborAnswer {
 public:
  explicit CborAnswer(std::string& out) : writer_(out) {}

  template <class T>
  void member(std::string_view name, const T& value) {
    writer_.key(name);
    element(value);
  }
  template <class Items, class Each>
  void list(std::string_view name, const Items& items, const Each& each) {
    writer_.key(name);
    writer_.array(items.size());
    for (const auto& item : items) each(item);
  }
  void element(std::string_view value) { writer_.text(value); }
  void element(double value) { writer_.real(value); }
  void element(Instant at) { writer_.timestamp(at); }
  template <class Write>
  void structure(const Write& write_members) {
    writer_.open_map();
    write_members();
    writer_.close_map();
  }
  void map(std::string_view name, const std::vector<std::pair<std::string, double>>& entries) {
    writer_.key(name);
    structure([&] {
      for (const auto& [entry, value] : entries) member(entry, value);
    });
  }

 private:
  CborWriter writer_;
};

template <class Writer>
void describe_token(Writer& w, const std::optional<std::string>& token) {
  if (token) w.member("NextToken", std::string_view(*token));
}

template <class Writer>
void describe(Writer& w, const GetMetricDataResult& result) {
  w.list("MetricDataResults", result.results, [&](const MetricDataResult& one) {
    w.structure([&] {
      w.member("Id", std::string_view(one.id));
      w.member("Label", std::string_view(one.label));
      w.list("Timestamps", one.timestamps, [&](Instant at) { w.element(at); });
      w.list("Values", one.values, [&](double value) { w.element(value); });
      w.member("StatusCode", std::string_view(one.complete ? "Complete" : "PartialData"));
    });
  });
  w.list("Messages", std::vector<int>(), [](int) {});
  describe_token(w, result.next_token);
}

template <class Writer>
void describe(Writer& w, const GetMetricStatisticsResult& result) {
  w.member("Label", std::string_view(result.label));
  const auto optional = [&](std::string_view name, const std::optional<double>& value) {
    if (value) w.member(name, *value);
  };
  w.list("Datapoints", result.datapoints, [&](const Datapoint& point) {
    w.structure([&] {
      w.member("Timestamp", point.at);
      optional("SampleCount", point.sample_count);
      optional("Average", point.average);
      optional("Sum", point.sum);
      optional("Minimum", point.minimum);
      optional("Maximum", point.maximum);
      w.member("Unit", point.unit);
      if (!point.extended.empty()) w.map("ExtendedStatistics", point.extended);
    });
  });
}

template <class Writer>
void describe(Writer& w, const ListMetricsResult& result) {
  w.list("Metrics", result.metrics, [&](const ListedMetric& metric) {
    w.structure([&] {
      w.member("Namespace", kNamespace);
      w.member("MetricName", metric.name);
      w.list("Dimensions", std::array{&metric.queue}, [&](const std::string* queue) {
        w.structure([&] {
          w.member("Name", kQueueDimension);
          w.member("Value", std::string_view(*queue));
        });
      });
    });
  });
  describe_token(w, result.next_token);
}

std::string_view type_of(CloudwatchProtocol protocol) {
  switch (protocol) {
    case CloudwatchProtocol::kJson:
      return kJsonType;
    case CloudwatchProtocol::kCbor:
      return kCborType;
    case CloudwatchProtocol::kQuery:
      return kXmlType;
  }
  return kXmlType;
}

HttpAnswer begin_answer(CloudwatchProtocol protocol, std::string_view request_id) {
  HttpAnswer answer;
  answer.content_type = type_of(protocol);
  answer.request_id = request_id;
  return answer;
}

// Messages may quote what a client sent, which nobody has checked to be UTF-8.
std::string utf8_message(const Error& error) {
  std::string text = error.message;
  if (is_utf8(text)) return text;
  for (char& c : text)
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  return text;
}

}  // namespace

HttpAnswer encode_cloudwatch(const Result& result, std::string_view action,
                             CloudwatchProtocol protocol, std::string_view request_id) {
  HttpAnswer answer = begin_answer(protocol, request_id);
  const auto describe_with = [&](auto writer) {
    std::visit([&](const auto& one) { describe(writer, one); }, result);
  };
  if (protocol == CloudwatchProtocol::kQuery) {
    answer.body = fmt::format("<{0}Response{1}<{0}Result>", action, kXmlNamespace);
    describe_with(XmlAnswer(answer.body));
    answer.body += fmt::format(
        "</{0}Result><ResponseMetadata><RequestId>{1}</RequestId></ResponseMetadata></{0}Response>",
        action, request_id);
  } else if (protocol == CloudwatchProtocol::kJson) {
    JsonAnswer writer(answer.body);
    writer.structure([&] { std::visit([&](const auto& one) { describe(writer, one); }, result); });
  } else {
    CborAnswer writer(answer.body);
    writer.structure([&] { std::visit([&](const auto& one) { describe(writer, one); }, result); });
  }
  return answer;
}

HttpAnswer encode_cloudwatch_error(const Error& error, CloudwatchProtocol protocol,
                                   std::string_view request_id) {
  HttpAnswer answer = begin_answer(protocol, request_id);
  const ErrorInfo& info = info_of(error.code);
  const std::string_view fault = info.sender_fault() ? "Sender" : "Receiver";
  const std::string message = utf8_message(error);
  answer.status = info.http_status;
  if (protocol == CloudwatchProtocol::kQuery) {
    answer.body = fmt::format("<ErrorResponse{}", kXmlNamespace);
    XmlAnswer writer(answer.body);
    writer.open("Error");
    writer.member("Type", fault);
    writer.member("Code", info.query_code);
    writer.member("Message", std::string_view(message));
    writer.close("Error");
    writer.member("RequestId", request_id);
    answer.body += "</ErrorResponse>";
    return answer;
  }
  answer.query_error = fmt::format("{};{}", info.query_code, fault);
  const auto write = [&](auto writer) {
    writer.structure([&] {
      writer.member("__type", info.json_type);
      writer.member("message", std::string_view(message));
    });
  };
  if (protocol == CloudwatchProtocol::kJson)
    write(JsonAnswer(answer.body));
  else
    write(CborAnswer(answer.body));
  return answer;
}

}  // namespace stanchion::wire
