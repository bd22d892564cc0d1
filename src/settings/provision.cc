#include "settings/provision.h"

#include <fmt/format.h>

#include "service/authorizer.h"

namespace stanchion::settings {
namespace {

constexpr std::string_view kRedrivePolicy = "RedrivePolicy";
constexpr std::string_view kFifoQueue = "FifoQueue";

// `part` is the part of the queue's settings concerned, if there is one.
std::unexpected<Failure> refused(const QueueSettings& queue, std::string_view part,
                                 std::string_view what, const Error& error) {
  return fail(
      fmt::format("{}: queue {}: {}: {}", queue.place_of(part), queue.name, what, error.message));
}

StringMap without_redrive(const StringMap& attributes) {
  StringMap rest = attributes;
  rest.erase(std::string(kRedrivePolicy));
  return rest;
}

StringMap differing(const StringMap& wanted, const StringMap& current) {
  StringMap out;
  for (const auto& [name, value] : wanted) {
    const auto found = current.find(name);
    if (found == current.end() ? !value.empty() : found->second != value) out.emplace(name, value);
  }
  return out;
}

std::string join_names(const StringMap& map) {
  std::string names;
  for (const auto& [name, value] : map) names += (names.empty() ? "" : ", ") + name;
  return names;
}

// The part of the settings that requires the change; if several do, all of the queue.
std::string place_of_change(const QueueSettings& queue, const StringMap& changes) {
  if (changes.size() != 1) return "attributes";
  const std::string& name = changes.begin()->first;
  return name == kRedrivePolicy && queue.redrive ? "redrive.dead_letter" : "attributes." + name;
}

class Provisioner {
 public:
  Provisioner(const Settings& settings, const Ask& ask) : settings_(settings), ask_(ask) {}

  // Creates the queue, or changes an existing one to match.
  Status ensure(const QueueSettings& queue) {
    const QueueRef ref = ref_of(settings_, queue);
    const StringMap wanted = without_redrive(queue.attributes);
    if (const auto error = service::check_new_policy(CreateQueue{ref, wanted, {}}))
      return refused(queue, "attributes.Policy", "attributes.Policy", *error);
    if (ask_(GetQueueUrl{ref})) {
      RETURN_IF_FAILED(set_attributes(queue, ref, wanted));
      return set_tags(queue, ref);
    }
    const Reply created = ask_(CreateQueue{ref, wanted, queue.tags});
    if (!created) return refused(queue, "name", "cannot be created", created.error());
    ++done_.created;
    return {};
  }

  Status ensure_redrive(const QueueSettings& queue) {
    const QueueRef ref = ref_of(settings_, queue);
    StringMap wanted;
    if (const auto given = queue.attributes.find(kRedrivePolicy); given != queue.attributes.end())
      wanted.insert(*given);
    if (queue.redrive) {
      const QueueRef target{ref.account, ref.region, queue.redrive->dead_letter};
      wanted[std::string(kRedrivePolicy)] =
          fmt::format(R"({{"deadLetterTargetArn":"{}","maxReceiveCount":{}}})", target.arn(),
                      queue.redrive->max_receive_count);
    }
    return wanted.empty() ? Status() : set_attributes(queue, ref, wanted);
  }

  const Provisioned& done() const { return done_; }

 private:
  Status set_attributes(const QueueSettings& queue, const QueueRef& ref, const StringMap& wanted) {
    const Reply current = ask_(GetQueueAttributes{ref, {"All"}});
    if (!current) return refused(queue, "attributes", "attributes", current.error());
    StringMap changes = differing(wanted, std::get<QueueAttributesResult>(*current).attributes);
    changes.erase(std::string(kFifoQueue));
    if (changes.empty()) return {};
    const Reply set = ask_(SetQueueAttributes{ref, changes});
    if (!set)
      return refused(queue, place_of_change(queue, changes), "attributes " + join_names(changes),
                     set.error());
    ++done_.changed;
    return {};
  }

  Status set_tags(const QueueSettings& queue, const QueueRef& ref) {
    if (queue.tags.empty()) return {};
    const Reply current = ask_(ListQueueTags{ref});
    if (!current) return refused(queue, "tags", "tags", current.error());
    const StringMap changes = differing(queue.tags, std::get<QueueTagsResult>(*current).tags);
    if (changes.empty()) return {};
    const Reply set = ask_(TagQueue{ref, changes});
    if (!set) return refused(queue, "tags", "tags " + join_names(changes), set.error());
    return {};
  }

  const Settings& settings_;
  const Ask& ask_;
  Provisioned done_;
};

}  // namespace

Result<Provisioned> provision_queues(const Settings& settings, const Ask& ask) {
  Provisioner provisioner(settings, ask);
  for (const QueueSettings& queue : settings.queues) RETURN_IF_FAILED(provisioner.ensure(queue));
  for (const QueueSettings& queue : settings.queues)
    RETURN_IF_FAILED(provisioner.ensure_redrive(queue));
  return provisioner.done();
}

}  // namespace stanchion::settings
