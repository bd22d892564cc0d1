// The profile files of the AWS tools: ~/.aws/credentials and ~/.aws/config.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "client/settings.h"

namespace stanchion::client {

// Section, then name, then value. A setting nested below a name has both names: "sqs.endpoint_url".
using IniFile = std::map<std::string, std::map<std::string, std::string>>;

// Lines that are neither a section nor a setting are skipped, as the AWS tools do.
IniFile parse_ini(std::string_view text);

// One profile, combined from both files; the credentials file comes first.
struct Profile {
  std::string name = {};
  bool exists = false;
  std::map<std::string, std::string> settings = {};
  std::string sqs_endpoint_url = {};  // Of the services section that the profile names.

  std::optional<std::string> get(const std::string& setting) const;
};

// A missing file counts as empty; a file that cannot be read is a failure, and so is a profile that
// was requested by name and is in neither file.
Result<Profile> load_profile(const std::string& name, const Environment& environment);

}  // namespace stanchion::client
