#include "tests/model/generator.h"

#include <array>

#include <initializer_list>
#include <random>
#include <utility>

namespace stanchion::reference {
namespace {

using Kind = Operation::Kind;

constexpr std::int64_t kMillisecond = 1;
constexpr std::int64_t kSecond = 1'000;
constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kDay = 24 * kHour;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  int below(int bound) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(bound)); }
  bool percent(int chance) { return below(100) < chance; }

  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[below(static_cast<int>(choices.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

// The theme of a sequence: which queues it uses and how.
struct Theme {
  std::vector<int> queues;  // The first is used most.
  int dead_letter_queue = 2;
  int groups = 0;  // 0: messages have none.
  int deduplication_ids = 0;
  int redrive_percent = 0;   // Of creating a queue with a redrive policy.
  int disorder_percent = 2;  // Of an operation that creates, deletes, purges or sets.
  int move_percent = 2;
  int transport_percent = 1;
  int story_percent = 1;
  int long_tick_percent = 5;
  int mistake_percent = 3;
  int store_percent = 0;  // Of a step of a checkpoint, or of an eviction.
};

Theme plain_theme() {
  return {.queues = {0, 0, 0, 1, 2}};
}
Theme fair_theme() {
  return {.queues = {0, 0, 0, 1, 2}, .groups = 6};
}
Theme fifo_theme() {
  return {.queues = {3, 3, 3, 4, 5}, .dead_letter_queue = 5, .groups = 4, .deduplication_ids = 40};
}
Theme dead_letter_theme(bool fifo) {
  Theme theme = fifo ? fifo_theme() : plain_theme();
  theme.redrive_percent = 90;
  theme.move_percent = 8;
  theme.transport_percent = 15;
  theme.story_percent = 3;
  theme.long_tick_percent = 2;
  theme.disorder_percent = 3;
  return theme;
}
Theme mixed_theme() {
  return {.queues = {0, 1, 2, 3, 4, 5},
          .groups = 3,
          .deduplication_ids = 20,
          .redrive_percent = 60,
          .disorder_percent = 10,
          .move_percent = 5,
          .transport_percent = 10,
          .story_percent = 2};
}

Theme theme_of(Random& random) {
  switch (random.below(8)) {
    case 0:
      return plain_theme();
    case 1:
      return fair_theme();
    case 2:
    case 3:
      return fifo_theme();
    case 4:
      return dead_letter_theme(false);
    case 5:
      return dead_letter_theme(true);
    case 6: {
      Theme theme = dead_letter_theme(false);
      theme.groups = 3;
      return theme;
    }
    default:
      return mixed_theme();
  }
}

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed), theme_(theme_of(random_)) {
    // In some worlds nearly everything is in the store nearly all the time.
    theme_.store_percent = std::array{0, 5, 20, 40}[random_.below(4)];
  }

  Sequence run(int operations, int check_every) {
    Sequence sequence{.strict = random_.percent(20),
                      .check_every = check_every,
                      .chunk_messages = random_.one_of<std::uint32_t>({1, 3, 3, 8}),
                      .operations = {}};
    sequence.operations.push_back(creation(theme_.dead_letter_queue));
    for (const int queue : theme_.queues)
      if (random_.percent(85)) sequence.operations.push_back(creation(queue));
    while (static_cast<int>(sequence.operations.size()) < operations) {
      if (random_.percent(theme_.story_percent)) {
        tell(sequence.operations);
      } else if (theme_.store_percent > 0 && random_.percent(3)) {
        keep(sequence.operations);
      } else {
        sequence.operations.push_back(operation());
      }
    }
    sequence.decision_messages = random_.one_of<std::size_t>({1, 2, 5, 1'000});
    return sequence;
  }

 private:
  int some_queue() {
    return theme_
        .queues[static_cast<std::size_t>(random_.below(static_cast<int>(theme_.queues.size())))];
  }

  static bool is_fifo(int queue) { return queue >= 3; }

  Setting setting(int queue) {
    using K = Setting::Kind;
    Setting setting;
    const bool mistaken = random_.percent(theme_.mistake_percent);
    const int kinds = is_fifo(queue) || mistaken ? 6 : 4;
    switch (random_.below(kinds)) {
      case 0:
        setting.kind = K::kVisibilityTimeout;
        setting.value = random_.one_of<std::int64_t>({0, 1, 5, 30, 600, 43'200});
        if (mistaken) setting.value = 43'201;
        break;
      case 1:
        setting.kind = K::kDelaySeconds;
        setting.value = random_.one_of<std::int64_t>({0, 0, 1, 5, 900});
        if (mistaken) setting.value = 901;
        break;
      case 2:
        setting.kind = K::kMessageRetentionPeriod;
        setting.value = random_.one_of<std::int64_t>({60, 90, 600, 345'600, 1'209'600});
        if (mistaken) setting.value = 59;
        break;
      case 3:
        return redrive(queue);
      case 4:
        setting.kind = K::kContentBasedDeduplication;
        setting.value = random_.below(2);
        break;
      default:
        setting.kind = K::kDeduplicationScope;
        setting.value = random_.below(2);
        break;
    }
    return setting;
  }

  Setting redrive(int queue) {
    Setting setting{Setting::Kind::kRedrivePolicy,
                    random_.one_of<std::int64_t>({0, 1, 1, 2, 3, 1000}), theme_.dead_letter_queue};
    if (random_.percent(20)) setting.target = random_.below(6);
    if (random_.percent(theme_.mistake_percent)) setting.value = 1'001;
    // SQS does not describe a queue that is its own dead-letter queue.
    if (setting.target == queue) setting.value = 0;
    return setting;
  }

  Operation creation(int queue) {
    Operation operation{.kind = Kind::kCreate, .queue = queue};
    const int settings = random_.one_of<int>({0, 0, 1, 2});
    for (int i = 0; i < settings; ++i) operation.settings.push_back(setting(queue));
    if (random_.percent(theme_.redrive_percent)) {
      Setting policy = redrive(queue);
      if (policy.target != queue && policy.value == 0) policy.value = 2;
      operation.settings.push_back(policy);
    }
    if (is_fifo(queue) && random_.percent(30))
      operation.settings.push_back({Setting::Kind::kContentBasedDeduplication, 1, 0});
    return operation;
  }

  Operation operation() {
    if (random_.percent(theme_.disorder_percent)) return disorder();
    if (random_.percent(theme_.transport_percent)) return transport();
    if (random_.percent(theme_.move_percent)) return move();
    if (random_.percent(2)) return {.kind = Kind::kRestart};
    if (random_.percent(theme_.store_percent)) return store();
    if (random_.percent(3)) return {.kind = Kind::kGet, .queue = some_queue()};
    if (random_.percent(2)) return peek();
    if (random_.percent(4)) return choose(some_queue());
    if (random_.percent(8))
      return {.kind = Kind::kPeekPage, .queue = some_queue(), .most = 1 + random_.below(3)};
    if (random_.percent(20)) return tick();
    switch (random_.below(10)) {
      case 0:
      case 1:
      case 2:
        return send();
      case 3:
      case 4:
      case 5:
      case 6:
        return receive();
      case 7:
      case 8:
        return settle_receipts(Kind::kDelete, Kind::kDeleteBatch);
      default:
        return settle_receipts(Kind::kChange, Kind::kChangeBatch);
    }
  }

  // A few operations that belong together and would rarely meet by chance.
  void tell(std::vector<Operation>& out) {
    const int queue = some_queue();
    const int dead = theme_.dead_letter_queue;
    const Operation deliver{.kind = Kind::kDeliver, .amount = 1000};
    const Operation settle{.kind = Kind::kSettle, .amount = 1000};
    const Operation look{.kind = Kind::kReceive, .queue = queue, .most = 10, .visibility = 0};
    Operation move{.kind = Kind::kStartMove, .queue = dead};
    switch (random_.below(6)) {
      case 4:  // Somebody looks at the queue and picks what was there.
        out.insert(out.end(), {send_to(queue), {.kind = Kind::kPeek, .queue = queue, .most = 100}});
        out.insert(out.end(), {operation(), choose(queue), operation(), choose(queue)});
        break;
      case 0:  // A dead-letter queue disappears while messages are on their way to it.
        out.insert(out.end(), {look, look, look, look});
        out.push_back({.kind = Kind::kDeleteQueue, .queue = dead});
        out.insert(out.end(), {deliver, settle, look, look, creation(dead)});
        break;
      case 1:  // The destination of a move task disappears.
        out.insert(out.end(), {look, look, look, look, deliver, settle});
        if (random_.percent(70)) move.target = queue;
        out.push_back(move);
        out.push_back({.kind = Kind::kDeleteQueue, .queue = queue});
        out.insert(out.end(), {deliver, settle, creation(queue)});
        break;
      case 2:  // A move task is slow and is cancelled under way.
        out.insert(out.end(), {look, look, look, look, deliver, settle});
        move.rate = random_.one_of<std::int64_t>({1, 3});
        out.push_back(move);
        out.insert(out.end(), {tick(), deliver, tick(), settle});
        out.push_back({.kind = Kind::kCancelMove, .queue = dead});
        break;
      case 3: {  // A consumer loses the answer to its receive and asks again.
        Operation again = receive();
        again.attempt = random_.below(2);
        out.insert(out.end(), {again, operation(), again});
        break;
      }
      default:  // The answer to a transfer is lost in a crash.
        out.insert(out.end(), {look, look, look, look, deliver});
        out.push_back({.kind = Kind::kRestart});
        out.insert(out.end(), {deliver, settle});
        break;
    }
  }

  // Evicts the messages of one queue while some of their neighbours are delayed, deleted or
  // changed: only then are there gaps among the messages that a chunk has in the store.
  void keep(std::vector<Operation>& out) {
    const int queue = some_queue();
    for (int left = 10 + random_.below(15); left > 0; --left) {
      Operation next;
      switch (random_.below(10)) {
        case 0:
        case 1:
          next = send_to(queue);
          if (!is_fifo(queue))
            for (Outgoing& message : next.messages)
              if (random_.percent(40)) message.delay = 1;
          break;
        case 7:
          next = {.kind = Kind::kPeek, .queue = queue, .most = 100};
          break;
        case 8:
          next = choose(queue);
          break;
        case 2:
          next = {.kind = Kind::kReceive, .queue = queue, .most = 1 + random_.below(3)};
          break;
        case 3:
          next = {.kind = Kind::kDeleteBatch, .queue = queue};
          for (int i = random_.below(3); i >= 0; --i)
            next.picks.push_back({.kind = Pick::Kind::kOwn, .back = i});
          break;
        case 4:
          next = {.kind = Kind::kTick,
                  .amount = random_.one_of<std::int64_t>({kMillisecond, kSecond})};
          break;
        case 5:
          if (is_fifo(queue) && random_.percent(30)) {
            next = {.kind = Kind::kSet, .queue = queue};
            next.settings.push_back(
                {Setting::Kind::kDelaySeconds, random_.one_of<std::int64_t>({0, 1, 5}), 0});
            break;
          }
          [[fallthrough]];
        case 6:
          out.push_back({.kind = Kind::kCheckpoint});
          next = {.kind = random_.percent(90) ? Kind::kDurable : Kind::kRestart};
          break;
        default:
          next = {.kind = Kind::kEvict, .amount = 0};
          break;
      }
      out.push_back(std::move(next));
    }
  }

  Operation store() {
    switch (random_.below(3)) {
      case 0:
        return {.kind = Kind::kCheckpoint};
      case 1:
        return {.kind = Kind::kDurable};
      default:
        return {.kind = Kind::kEvict, .amount = random_.percent(70) ? 0 : 2'000};
    }
  }

  Operation peek() {
    Operation operation{.kind = Kind::kPeek, .queue = some_queue(), .amount = random_.below(8)};
    if (random_.percent(70)) operation.most = random_.one_of<std::int64_t>({1, 2, 5, 100});
    return operation;
  }

  // Messages that the latest peeks have shown.
  Operation choose(int queue) {
    Operation operation{.kind = Kind::kChoose, .queue = queue};
    operation.full = random_.percent(5);
    const int reach = random_.one_of<int>({3, 8, 20});
    for (int i = random_.one_of<int>({0, 1, 3, 9}); i >= 0; --i)
      operation.picks.push_back({.back = random_.below(reach)});
    if (random_.percent(50))
      operation.visibility = random_.one_of<std::int64_t>({0, 0, 1, 2, 5, 30});
    if (random_.percent(theme_.mistake_percent)) {
      const auto wrong =
          random_.one_of({Pick::Kind::kAny, Pick::Kind::kGarbage, Pick::Kind::kForged});
      operation.picks.push_back({.kind = wrong, .back = random_.below(reach)});
    }
    return operation;
  }

  Operation disorder() {
    const int queue = some_queue();
    switch (random_.below(10)) {
      case 0:
        return {.kind = Kind::kDeleteQueue, .queue = queue};
      case 1:
        return {.kind = Kind::kPurge, .queue = queue};
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
        return creation(queue);
      default: {
        Operation operation{.kind = Kind::kSet, .queue = queue};
        for (int i = random_.below(3); i >= 0; --i) operation.settings.push_back(setting(queue));
        return operation;
      }
    }
  }

  Operation transport() {
    return {.kind = random_.percent(50) ? Kind::kDeliver : Kind::kSettle,
            .amount = random_.one_of<std::int64_t>({1, 2, 1000})};
  }

  Operation move() {
    Operation operation{.queue = random_.percent(80) ? theme_.dead_letter_queue : some_queue()};
    const int dice = random_.below(10);
    operation.kind = dice < 5 ? Kind::kStartMove : dice < 7 ? Kind::kCancelMove : Kind::kListMoves;
    if (operation.kind == Kind::kStartMove) {
      if (random_.percent(40)) operation.target = some_queue();
      if (random_.percent(40)) operation.rate = random_.one_of<std::int64_t>({1, 3, 100, 500});
      if (random_.percent(theme_.mistake_percent)) operation.rate = 501;
    }
    if (operation.kind == Kind::kCancelMove) operation.amount = random_.below(3);
    if (operation.kind == Kind::kListMoves && random_.percent(70))
      operation.most = random_.one_of<std::int64_t>({1, 2, 10, 11});
    return operation;
  }

  Operation tick() {
    Operation operation{.kind = Kind::kTick};
    operation.amount =
        random_.percent(theme_.long_tick_percent)
            ? random_.one_of<std::int64_t>({5 * kMinute - 1, 5 * kMinute, 15 * kMinute, kHour,
                                            12 * kHour, kDay, 4 * kDay, 14 * kDay})
            : random_.one_of<std::int64_t>({kMillisecond, 7, 400, 999, kSecond, 2 * kSecond,
                                            5 * kSecond, 30 * kSecond, 59 * kSecond, kMinute});
    if (random_.percent(15)) operation.steps = 2 + random_.below(4);
    return operation;
  }

  Outgoing outgoing(int queue) {
    Outgoing message;
    const bool fifo = is_fifo(queue);
    message.body = 1 + random_.below(random_.percent(50) ? 5 : 1000);
    if (!fifo && random_.percent(15)) message.delay = random_.one_of<std::int64_t>({0, 1, 5, 900});
    if (theme_.groups > 0 && (fifo || random_.percent(80)))
      message.group = 1 + random_.below(theme_.groups);
    if (fifo && random_.percent(97))
      message.deduplication = random_.below(1 + theme_.deduplication_ids);
    return message;
  }

  void spoil(Outgoing& message) {
    switch (random_.below(6)) {
      case 0:
        message.body = 0;
        break;
      case 1:
        message.delay = 901;
        break;
      case 2:
        message.group = 0;
        break;
      case 3:
        message.group.reset();
        break;
      case 4:
        message.delay = random_.below(2);
        break;
      default:
        message.deduplication = 1;
    }
  }

  Operation send() {
    Operation operation{.kind = Kind::kSend, .queue = some_queue()};
    int count = 1;
    if (random_.percent(50)) {
      operation.kind = Kind::kSendBatch;
      count = random_.one_of<int>({1, 2, 3, 10});
      if (random_.percent(2)) count = random_.one_of<int>({0, 11});
      operation.ids = some_ids();
    }
    for (int i = 0; i < count; ++i) operation.messages.push_back(outgoing(operation.queue));
    if (count > 0 && random_.percent(theme_.mistake_percent))
      spoil(operation.messages[static_cast<std::size_t>(random_.below(count))]);
    return operation;
  }

  Operation send_to(int queue) {
    Operation operation{.kind = Kind::kSendBatch, .queue = queue};
    for (int i = random_.below(5); i >= 0; --i) operation.messages.push_back(outgoing(queue));
    return operation;
  }

  Operation::Ids some_ids() {
    if (random_.percent(97)) return Operation::Ids::kGood;
    return random_.percent(50) ? Operation::Ids::kRepeated : Operation::Ids::kForbidden;
  }

  Operation receive() {
    Operation operation{.kind = Kind::kReceive, .queue = some_queue()};
    operation.full = random_.percent(5);
    if (random_.percent(80)) operation.most = random_.one_of<std::int64_t>({1, 2, 3, 10, 10});
    if (random_.percent(50))
      operation.visibility = random_.one_of<std::int64_t>({0, 0, 1, 1, 2, 5, 30, 600, 43'200});
    if (is_fifo(operation.queue) && random_.percent(30)) operation.attempt = random_.below(2);
    if (random_.percent(theme_.mistake_percent)) {
      switch (random_.below(3)) {
        case 0:
          operation.most = random_.one_of<std::int64_t>({0, 11});
          break;
        case 1:
          operation.visibility = 43'201;
          break;
        default:
          operation.attempt = 1;
      }
    }
    return operation;
  }

  Pick pick() {
    Pick pick;
    pick.back = random_.percent(60) ? random_.below(3) : random_.below(15);
    const int dice = random_.below(100);
    if (dice < 4) {
      pick.kind = Pick::Kind::kAny;
    } else if (dice < 4 + theme_.mistake_percent) {
      pick.kind = random_.one_of({Pick::Kind::kGarbage, Pick::Kind::kForged, Pick::Kind::kMissing});
    }
    return pick;
  }

  // Deletes and changes of visibility, of one message or in a batch.
  Operation settle_receipts(Kind one, Kind batch) {
    Operation operation{.kind = one, .queue = some_queue()};
    int count = 1;
    if (random_.percent(40)) {
      operation.kind = batch;
      count = 1 + random_.below(10);
      if (random_.percent(2)) count = random_.one_of<int>({0, 11});
      operation.ids = some_ids();
    }
    for (int i = 0; i < count; ++i) {
      operation.picks.push_back(pick());
      if (one == Kind::kDelete || random_.percent(2)) continue;
      operation.picks.back().timeout =
          random_.one_of<std::int64_t>({0, 0, 1, 5, 30, 600, 43'199, 43'200});
      if (random_.percent(theme_.mistake_percent)) operation.picks.back().timeout = 43'201;
    }
    return operation;
  }

  Random random_;
  Theme theme_;
};

}  // namespace

Sequence generate(std::uint64_t seed, int operations, int check_every) {
  return Generator(seed).run(operations, check_every);
}

}  // namespace stanchion::reference
