#include "store/identity.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace stanchion::store {
namespace {

constexpr std::string_view kNewName = "SHARD.new";
constexpr std::size_t kSizeMax = 4096;

// The text as one printable line of a message, whatever a damaged file holds.
std::string on_one_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  std::ranges::replace(text, '\n', ',');
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

Result<bool> is_in_use(os::Directory& store) {
  auto names = store.list();
  if (!names) return std::unexpected(std::move(names).error());
  return std::ranges::find(*names, "CURRENT") != names->end();
}

}  // namespace

Result<std::string> read_identity(os::Directory& store) {
  auto file = store.open_file(kIdentityName, os::OpenMode::kReadOnly);
  if (!file) {
    if (file.error().os_error == ENOENT) return std::string();
    return std::unexpected(std::move(file).error());
  }
  std::string text(kSizeMax, '\0');
  auto size = (*file)->read_at(0, text);
  if (!size) return std::unexpected(std::move(size).error());
  text.resize(*size);
  return text;
}

Status write_identity(os::Directory& store, std::string_view identity) {
  auto file = store.open_file(kNewName, os::OpenMode::kCreateNew);
  if (!file && file.error().os_error == EEXIST)
    file = store.open_file(kNewName, os::OpenMode::kReadWrite);
  if (!file) return std::unexpected(std::move(file).error());
  RETURN_IF_FAILED((*file)->truncate(0));
  RETURN_IF_FAILED((*file)->write_at(0, identity));
  RETURN_IF_FAILED((*file)->sync_data());
  RETURN_IF_FAILED(store.rename(kNewName, kIdentityName));
  return store.sync();
}

Status check_identity(os::Directory& store, std::string_view identity) {
  auto found = read_identity(store);
  if (!found) return std::unexpected(std::move(found).error());
  if (*found == identity) return {};
  const std::string path = store.path() + "/" + std::string(kIdentityName);
  constexpr std::string_view kWhatToDo =
      ". Nothing was changed. Put the right store there, or restore the whole directory from a "
      "backup.";
  if (!found->empty())
    return fail("the store " + store.path() + " is not this shard's: " + path + " says '" +
                on_one_line(*found) + "' and should say '" + on_one_line(std::string(identity)) +
                "'" + std::string(kWhatToDo));
  auto in_use = is_in_use(store);
  if (!in_use) return std::unexpected(std::move(in_use).error());
  if (!*in_use) return {};
  return fail("the store " + store.path() + " does not say whose it is: " + path + " is missing" +
              std::string(kWhatToDo));
}

}  // namespace stanchion::store
