// Carries frames between the nodes of a fleet over TCP.
//
// Between two nodes there is a session: as many connections, its lanes, as the node that dials has
// reactors. The node with the smaller name dials; the other one listens.
//
//   dialler: connect all lanes ─▶ hello on each ─▶ answers of all ─▶ made ─▶ frames … ─▶ broke
//   listener:          hellos of all lanes ─▶ made ─▶ answer on each ─▶ frames … ─▶ broke
//                                                        (dialled again after a while) ◀─┘
//
//   TL1  Frames that one thread sends to a node travel by one lane of a session, so they arrive in
//        their order. All frames of a shard are sent on the shard's loop.
//   TL2  When any lane of a session breaks, the whole session does: made() and broke() take turns
//        for a node, frames are taken only between the two, and nothing of an old session is taken
//        later.
//   TL3  A frame for which send() was true arrives, or broke() is called after it was sent.
//   TL4  A peer that says nothing for kSilentAfter, or that takes too little of what is sent to it,
//        is cut off.
//   TL5  Nobody is heard before both sides have proved to be of the fleet; without TLS both must be
//        on this machine.
//
// Of two processes that claim the same node name the one that connected last is heard: it is
// usually the same node, started again, and the other one only a connection that has not been
// missed yet. A fleet in which both really run loses no data by it, because the log decides who may
// write, but requests fail; the log says so.
//
// Any thread may call; events are called on reactors.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "fleet/transport.h"
#include "model/ids.h"
#include "net/reactor.h"

namespace stanchion::link {

// Certificate, key and authority, for mutual TLS: whoever has a certificate of the authority is a
// node, so the authority should be the fleet's own; the file may hold several. Or a file with a secret
// that all nodes share, and one with another that is accepted as well, so that each node can have a
// new one at a time of its own. Neither: all nodes are on this machine.
struct LinkSecurity {
  std::string certificate_file = {};  // PEM, all three.
  std::string key_file = {};
  std::string ca_file = {};
  std::string secret_file = {};
  std::string accepted_secret_file = {};
};

struct LinkOptions {
  std::string fleet = {};
  std::uint32_t shards = 1;
  fleet::NodeName node = {};
  std::uint64_t process = 0;  // Drawn at each start.
  std::string host = {};      // Where to listen.
  std::uint16_t port = 0;     // 0: any free one.
  LinkSecurity security = {};
};

// Makes a consistent copy of the shard's store in a directory that holds nothing else, calls `send`
// with the directory, which blocks, and removes it. Called on a thread of its own.
using SendDirectory = std::function<Status(const std::string& directory)>;
using ServeCopy = std::function<Status(ShardIndex shard, const SendDirectory& send)>;

struct LinkEvents {
  std::function<void(const fleet::NodeName& from, fleet::Frame frame)> take;
  std::function<void(const fleet::NodeName& node)> broke;
  std::function<void(const fleet::NodeName& node)> made;
  ServeCopy serve_copy = nullptr;  // None: copies are refused.
  std::function<void(const std::string& line)> log;
};

class TcpTransport final : public fleet::Transport {
 public:
  // Listens, so that port() is known, but takes no connection before start(). The pool must be
  // running, and outlive the transport.
  static Result<std::unique_ptr<TcpTransport>> listen(net::ReactorPool& pool, LinkOptions options);
  // Not on a reactor.
  ~TcpTransport() override;

  void start(LinkEvents events);
  // Breaks all sessions without a word to the events, and returns when none of them is being
  // called. Not on a reactor. May be called twice.
  void stop();

  std::uint16_t port() const;

  // All other nodes and where they listen, as HOST:PORT. Sessions with nodes that are not in it, or
  // whose address is another now, break.
  void set_peers(const std::map<fleet::NodeName, std::string>& addresses);

  bool send(const fleet::NodeName& to, fleet::Frame frame) override;
  // Whole sessions, between made() and broke(); and of the others that set_peers() named, what went
  // wrong last.
  std::optional<fleet::Links> links() override;

  // Copies the store of a shard from the node that listens at `address` into the directory
  // `target`, which must not exist; it appears there when it is complete and durable. Blocks.
  Status copy_store(const std::string& address, ShardIndex shard, const std::string& target);

 private:
  struct Impl;
  explicit TcpTransport(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace stanchion::link
