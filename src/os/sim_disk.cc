#include "os/sim_disk.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/digest.h"

namespace stanchion::os {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kSector = SimDisk::kSectorSize;

using Sector = std::array<char, kSector>;
using Sectors = std::map<std::uint64_t, Sector>;  // Missing sectors read as zeros.

// The number of the first sector that begins at or after `size`.
std::uint64_t sectors_of(std::uint64_t size) {
  return (size + kSector - 1) / kSector;
}

// Cuts `sectors` to a file of `size` bytes: no sectors after the end, the rest of the last one
// zero.
void cut(Sectors& sectors, std::uint64_t size) {
  sectors.erase(sectors.lower_bound(sectors_of(size)), sectors.end());
  if (size % kSector == 0) return;
  if (const auto last = sectors.find(size / kSector); last != sectors.end())
    std::ranges::fill(last->second.begin() + static_cast<std::ptrdiff_t>(size % kSector),
                      last->second.end(), '\0');
}

}  // namespace

struct SimDisk::Inode {
  std::uint64_t size = 0;
  std::uint64_t durable_size = 0;
  std::vector<std::uint64_t> size_steps;  // Sizes since the last sync, in order.
  Sectors durable;
  Sectors dirty;
  Sectors forgotten;

  const Sector* find(std::uint64_t number) const {
    for (const Sectors* layer : {&dirty, &forgotten, &durable})
      if (const auto it = layer->find(number); it != layer->end()) return &it->second;
    return nullptr;
  }

  Sector& for_writing(std::uint64_t number) {
    if (const auto it = dirty.find(number); it != dirty.end()) return it->second;
    const Sector* now = find(number);
    Sector& made = dirty.emplace(number, now != nullptr ? *now : Sector{}).first->second;
    forgotten.erase(number);
    return made;
  }

  void resize(std::uint64_t to) {
    if (to == size) return;
    if (to < size) {
      cut(dirty, to);
      cut(forgotten, to);
      // Bytes that the durable layer has after the cut must read as zeros should the file grow
      // again.
      for (auto it = durable.lower_bound(to / kSector); it != durable.end(); ++it) {
        Sector& sector = for_writing(it->first);
        const std::uint64_t start = it->first * kSector;
        const std::uint64_t kept = to > start ? to - start : 0;
        std::fill(sector.begin() + static_cast<std::ptrdiff_t>(kept), sector.end(), '\0');
      }
    }
    size = to;
    size_steps.push_back(to);
  }

  void write(std::uint64_t offset, std::string_view bytes) {
    if (offset + bytes.size() > size) resize(offset + bytes.size());
    while (!bytes.empty()) {
      const std::size_t within = static_cast<std::size_t>(offset % kSector);
      const std::size_t count = std::min(bytes.size(), kSector - within);
      bytes.copy(for_writing(offset / kSector).data() + within, count);
      bytes.remove_prefix(count);
      offset += count;
    }
  }

  std::size_t read(std::uint64_t offset, std::span<char> into) const {
    if (offset >= size) return 0;
    const std::size_t total =
        static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), size - offset));
    for (std::size_t done = 0; done < total;) {
      const std::size_t within = static_cast<std::size_t>((offset + done) % kSector);
      const std::size_t count = std::min(total - done, kSector - within);
      const Sector* sector = find((offset + done) / kSector);
      if (sector != nullptr) {
        std::copy_n(sector->data() + within, count, into.data() + done);
      } else {
        std::fill_n(into.data() + done, count, '\0');
      }
      done += count;
    }
    return total;
  }

  void sync() {
    for (auto& [number, sector] : dirty) durable[number] = sector;
    dirty.clear();
    durable_size = size;
    size_steps.clear();
    cut(durable, size);
  }

  void forget() {
    for (auto& [number, sector] : dirty) forgotten[number] = sector;
    dirty.clear();
  }
};

// One change of a directory's names.
struct SimDisk::Step {
  using Entry = std::variant<std::shared_ptr<Inode>, std::shared_ptr<Folder>>;

  std::string removed;  // Empty: no name is removed.
  std::string added;    // Empty: no name is added.
  Entry entry;          // The inode that `added` names.

  void apply(std::map<std::string, Entry>& names) const {
    if (!removed.empty()) names.erase(removed);
    if (!added.empty()) names[added] = entry;
  }
};

struct SimDisk::Folder {
  using Entry = Step::Entry;

  std::map<std::string, Entry> names;
  std::map<std::string, Entry> durable;
  std::vector<Step> steps;  // Since the last sync, in order.
  bool locked = false;

  void change(Step step) {
    step.apply(names);
    steps.push_back(std::move(step));
  }

  void sync() {
    for (const Step& step : steps) step.apply(durable);
    steps.clear();
  }

  Inode* file(std::string_view name) const {
    const auto it = names.find(std::string(name));
    if (it == names.end()) return nullptr;
    const auto* inode = std::get_if<std::shared_ptr<Inode>>(&it->second);
    return inode == nullptr ? nullptr : inode->get();
  }

  // Calls visit(path, inode) for every file of the tree, in the order of their names.
  template <class Visit>
  void each_file(const std::string& path, Visit visit) const {
    for (const auto& [name, entry] : names) {
      if (const auto* inode = std::get_if<std::shared_ptr<Inode>>(&entry)) {
        visit(path + "/" + name, **inode);
      } else {
        std::get<std::shared_ptr<Folder>>(entry)->each_file(path + "/" + name, visit);
      }
    }
  }
};

class SimFile final : public File {
 public:
  SimFile(SimDisk& disk, std::shared_ptr<SimDisk::Inode> inode, std::string path, OpenMode mode)
      : disk_(disk),
        generation_(disk.generation_),
        inode_(std::move(inode)),
        path_(std::move(path)),
        mode_(mode) {}

  const std::string& path() const override { return path_; }

  Status write_at(std::uint64_t offset, std::string_view bytes) override {
    RETURN_IF_FAILED(begin_change());
    RETURN_IF_FAILED(take_space(offset + bytes.size(), "write"));
    if (disk_.due(disk_.write_countdown_)) {
      inode_->write(offset, bytes.substr(0, bytes.size() / 2));
      return fail("cannot write " + path_ + ": simulated I/O error", EIO);
    }
    inode_->write(offset, bytes);
    if (mode_ == OpenMode::kAppend) zero_rest_of_block(offset + bytes.size());
    return {};
  }

  Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) override {
    RETURN_IF_FAILED(disk_.begin(generation_, path_, false));
    return inode_->read(offset, into);
  }

  Status sync_data() override {
    RETURN_IF_FAILED(disk_.begin(generation_, path_, true));
    if (disk_.due(disk_.sync_countdown_)) {
      inode_->forget();
      return fail("cannot sync " + path_ + ": simulated I/O error", EIO);
    }
    inode_->sync();
    return {};
  }

  Status allocate(std::uint64_t size) override {
    RETURN_IF_FAILED(begin_change());
    RETURN_IF_FAILED(take_space(size, "allocate space for"));
    if (size > inode_->size) inode_->resize(size);
    return {};
  }

  Status truncate(std::uint64_t size) override {
    RETURN_IF_FAILED(begin_change());
    RETURN_IF_FAILED(take_space(size, "truncate"));
    inode_->resize(size);
    return {};
  }

  Result<std::uint64_t> size() override {
    RETURN_IF_FAILED(disk_.begin(generation_, path_, false));
    return inode_->size;
  }

 private:
  void zero_rest_of_block(std::uint64_t from) {
    const std::uint64_t block_end = (from + kBlockSize - 1) / kBlockSize * kBlockSize;
    const std::uint64_t end = std::min(block_end, inode_->size);
    if (from < end) inode_->write(from, std::string(static_cast<std::size_t>(end - from), '\0'));
  }

  Status begin_change() {
    CHECK(mode_ != OpenMode::kReadOnly, path_);
    return disk_.begin(generation_, path_, true);
  }

  Status take_space(std::uint64_t new_size, const char* what) {
    if (new_size <= inode_->size || disk_.capacity_ == kUnlimited) return {};
    const std::uint64_t more = new_size - inode_->size;
    if (disk_.used() + more <= disk_.capacity_) return {};
    return fail("cannot " + std::string(what) + " " + path_ + ": No space left on device", ENOSPC);
  }

  SimDisk& disk_;
  std::uint64_t generation_;
  std::shared_ptr<SimDisk::Inode> inode_;
  std::string path_;
  OpenMode mode_;
};

class SimLock final : public DirectoryLock {
 public:
  SimLock(SimDisk& disk, std::shared_ptr<SimDisk::Folder> folder)
      : disk_(disk), generation_(disk.generation_), folder_(std::move(folder)) {}
  ~SimLock() override {
    if (generation_ == disk_.generation_) folder_->locked = false;
  }

 private:
  SimDisk& disk_;
  std::uint64_t generation_;
  std::shared_ptr<SimDisk::Folder> folder_;
};

class SimDirectory final : public Directory {
 public:
  SimDirectory(SimDisk& disk, std::shared_ptr<SimDisk::Folder> folder, std::string path)
      : disk_(disk),
        generation_(disk.generation_),
        folder_(std::move(folder)),
        path_(std::move(path)) {}

  const std::string& path() const override { return path_; }

  Result<std::unique_ptr<File>> open_file(std::string_view name, OpenMode mode) override {
    CHECK(is_plain_name(name), name);
    const bool creates = mode == OpenMode::kCreateNew;
    RETURN_IF_FAILED(disk_.begin(generation_, path_, creates));
    const auto found = folder_->names.find(std::string(name));
    std::shared_ptr<SimDisk::Inode> inode;
    if (creates) {
      if (found != folder_->names.end()) return failure("open", name, "File exists", EEXIST);
      inode = std::make_shared<SimDisk::Inode>();
      folder_->change({.removed = {}, .added = std::string(name), .entry = inode});
    } else {
      if (found == folder_->names.end())
        return failure("open", name, "No such file or directory", ENOENT);
      const auto* file = std::get_if<std::shared_ptr<SimDisk::Inode>>(&found->second);
      if (file == nullptr) return failure("open", name, "Is a directory", EISDIR);
      inode = *file;
    }
    return std::make_unique<SimFile>(disk_, std::move(inode), path_of(name), mode);
  }

  Result<std::vector<std::string>> list() override {
    RETURN_IF_FAILED(disk_.begin(generation_, path_, false));
    std::vector<std::string> names;
    for (const auto& [name, entry] : folder_->names)
      if (std::holds_alternative<std::shared_ptr<SimDisk::Inode>>(entry)) names.push_back(name);
    return names;
  }

  Status remove(std::string_view name) override {
    RETURN_IF_FAILED(disk_.begin(generation_, path_, true));
    if (folder_->file(name) == nullptr)
      return failure("remove", name, "No such file or directory", ENOENT);
    folder_->change({.removed = std::string(name), .added = {}, .entry = {}});
    return {};
  }

  Status rename(std::string_view from, std::string_view to) override {
    CHECK(is_plain_name(to), to);
    RETURN_IF_FAILED(disk_.begin(generation_, path_, true));
    if (folder_->file(from) == nullptr)
      return failure("rename", from, "No such file or directory", ENOENT);
    SimDisk::Folder::Entry entry = folder_->names.at(std::string(from));
    folder_->change(
        {.removed = std::string(from), .added = std::string(to), .entry = std::move(entry)});
    return {};
  }

  Status sync() override {
    RETURN_IF_FAILED(disk_.begin(generation_, path_, true));
    if (disk_.due(disk_.sync_countdown_))
      return fail("cannot sync " + path_ + ": simulated I/O error", EIO);
    folder_->sync();
    return {};
  }

  Result<std::unique_ptr<Directory>> open_directory(std::string_view name) override {
    CHECK(is_plain_name(name), name);
    RETURN_IF_FAILED(disk_.begin(generation_, path_, true));
    const auto found = folder_->names.find(std::string(name));
    if (found == folder_->names.end()) {
      auto made = std::make_shared<SimDisk::Folder>();
      folder_->change({.removed = {}, .added = std::string(name), .entry = made});
      return std::make_unique<SimDirectory>(disk_, std::move(made), path_of(name));
    }
    const auto* folder = std::get_if<std::shared_ptr<SimDisk::Folder>>(&found->second);
    if (folder == nullptr) return failure("open", name, "Not a directory", ENOTDIR);
    return std::make_unique<SimDirectory>(disk_, *folder, path_of(name));
  }

  Result<std::unique_ptr<DirectoryLock>> lock() override {
    RETURN_IF_FAILED(disk_.begin(generation_, path_, false));
    if (folder_->locked)
      return fail(path_ + " is in use by another stanchion (pid simulated)", EBUSY);
    folder_->locked = true;
    return std::make_unique<SimLock>(disk_, folder_);
  }

  Result<std::uint64_t> free_space() override {
    RETURN_IF_FAILED(disk_.begin(generation_, path_, false));
    const std::uint64_t used = disk_.used();
    return used >= disk_.capacity_ ? 0 : disk_.capacity_ - used;
  }

 private:
  std::string path_of(std::string_view name) const { return path_ + "/" + std::string(name); }

  std::unexpected<Failure> failure(const char* what, std::string_view name, const char* why,
                                   int error) const {
    return fail("cannot " + std::string(what) + " " + path_of(name) + ": " + why, error);
  }

  SimDisk& disk_;
  std::uint64_t generation_;
  std::shared_ptr<SimDisk::Folder> folder_;
  std::string path_;
};

SimDisk::SimDisk() : root_(std::make_shared<Folder>()), capacity_(kUnlimited) {}
SimDisk::~SimDisk() = default;

std::unique_ptr<Directory> SimDisk::root() {
  return std::make_unique<SimDirectory>(*this, root_, "sim");
}

Status SimDisk::begin(std::uint64_t generation, const std::string& path, bool changes) {
  if (generation != generation_) return fail(path + " was opened before the crash", EIO);
  if (power_left_ && *power_left_ == 0) return fail(path + ": the simulated power is out", EIO);
  if (changes) {
    ++operations_;
    if (power_left_) --*power_left_;
  }
  return {};
}

bool SimDisk::due(std::uint64_t& countdown) {
  return countdown != 0 && --countdown == 0;
}

void SimDisk::forget_or_keep(Inode& inode, std::optional<std::mt19937_64>& random) {
  const std::uint64_t draw = random ? (*random)() : 0;
  const std::size_t kept_steps =
      random ? static_cast<std::size_t>(draw >> 8) % (inode.size_steps.size() + 1) : 0;
  std::uint64_t size = inode.durable_size;
  for (std::size_t i = 0; i < kept_steps; ++i) {
    size = inode.size_steps[i];
    cut(inode.durable, size);
  }

  // One crash in four keeps nothing, one everything, the others a random half of the sectors.
  Sectors loose = std::move(inode.forgotten);
  for (auto& [number, sector] : inode.dirty) loose[number] = sector;
  for (auto& [number, sector] : loose) {
    const bool keep = random && (draw % 4 == 1 || (draw % 4 >= 2 && ((*random)() & 1) == 1));
    if (keep) inode.durable[number] = sector;
  }
  cut(inode.durable, size);
  inode.size = inode.durable_size = size;
  inode.size_steps.clear();
  inode.dirty.clear();
  inode.forgotten.clear();
}

void SimDisk::crash_folder(Folder& folder, std::optional<std::mt19937_64>& random) {
  const std::size_t kept =
      random ? static_cast<std::size_t>((*random)()) % (folder.steps.size() + 1) : 0;
  for (std::size_t i = 0; i < kept; ++i) folder.steps[i].apply(folder.durable);
  folder.steps.clear();
  folder.names = folder.durable;
  folder.locked = false;
  for (auto& [name, entry] : folder.names) {
    if (const auto* inode = std::get_if<std::shared_ptr<Inode>>(&entry)) {
      forget_or_keep(**inode, random);
    } else {
      crash_folder(*std::get<std::shared_ptr<Folder>>(entry), random);
    }
  }
}

void SimDisk::crash(std::optional<std::uint64_t> seed) {
  std::optional<std::mt19937_64> random;
  if (seed) random.emplace(*seed);
  ++generation_;
  power_left_.reset();
  sync_countdown_ = write_countdown_ = 0;
  crash_folder(*root_, random);
}

void SimDisk::restart_process() {
  ++generation_;
  std::vector<Folder*> folders{root_.get()};
  while (!folders.empty()) {
    Folder* folder = folders.back();
    folders.pop_back();
    folder->locked = false;
    for (auto& [name, entry] : folder->names)
      if (const auto* sub = std::get_if<std::shared_ptr<Folder>>(&entry))
        folders.push_back(sub->get());
  }
}

void SimDisk::set_capacity(std::uint64_t bytes) {
  capacity_ = bytes;
}

std::uint64_t SimDisk::used() const {
  std::uint64_t total = 0;
  root_->each_file("sim", [&](const std::string&, const Inode& inode) { total += inode.size; });
  return total;
}

void SimDisk::fail_sync(std::uint64_t n) {
  sync_countdown_ = n;
}
void SimDisk::fail_write(std::uint64_t n) {
  write_countdown_ = n;
}
void SimDisk::power_off_after(std::uint64_t n) {
  power_left_ = n;
}

SimDisk::Folder* SimDisk::find_folder(std::string_view path, std::string_view& name, bool create) {
  Folder* folder = root_.get();
  for (std::size_t slash = path.find('/'); slash != std::string_view::npos;
       slash = path.find('/')) {
    const std::string part(path.substr(0, slash));
    path.remove_prefix(slash + 1);
    if (!folder->names.contains(part)) {
      if (!create) return nullptr;
      folder->change({.removed = {}, .added = part, .entry = std::make_shared<Folder>()});
      folder->sync();
    }
    const auto* next = std::get_if<std::shared_ptr<Folder>>(&folder->names.at(part));
    if (next == nullptr) return nullptr;
    folder = next->get();
  }
  name = path;
  return folder;
}

std::optional<std::string> SimDisk::content(std::string_view path) const {
  std::string_view name;
  const Folder* folder = const_cast<SimDisk*>(this)->find_folder(path, name, false);
  const Inode* inode = folder == nullptr ? nullptr : folder->file(name);
  if (inode == nullptr) return std::nullopt;
  std::string bytes(static_cast<std::size_t>(inode->size), '\0');
  inode->read(0, bytes);
  return bytes;
}

void SimDisk::put(std::string_view path, std::string_view bytes) {
  std::string_view name;
  Folder* folder = find_folder(path, name, true);
  CHECK(folder != nullptr && is_plain_name(name), path);
  auto inode = std::make_shared<Inode>();
  inode->write(0, bytes);
  inode->sync();
  folder->change({.removed = {}, .added = std::string(name), .entry = std::move(inode)});
  folder->sync();
}

std::uint64_t SimDisk::fingerprint() const {
  std::uint64_t hash = 0;
  root_->each_file("", [&](const std::string& path, const Inode& inode) {
    hash = xxh3_64(path, hash + inode.size);
    std::string bytes(static_cast<std::size_t>(inode.size), '\0');
    inode.read(0, bytes);
    hash = xxh3_64(bytes, hash);
  });
  return hash;
}

}  // namespace stanchion::os
