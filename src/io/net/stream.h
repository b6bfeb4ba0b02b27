// SPDX-License-Identifier: Apache-2.0
// A non-blocking TCP connection, plain or TLS, without a loop of its own: the owner watches fd()
// and calls read and write until they would block.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "io/net/address.h"
#include "io/net/fd.h"
#include "io/net/tls.h"

namespace signalbox::net {

// `bytes` > 0 when `status` is Ok.
struct IoResult {
  enum class Status : std::uint8_t { Ok, WouldBlock, Closed, Failed };
  Status status = Status::WouldBlock;
  std::size_t bytes = 0;
};

class Stream {
 public:
  Stream() = default;
  // Takes an accepted socket; starts a TLS handshake when `tls` is given.
  static Result<Stream> accepted(Fd fd, const std::shared_ptr<TlsContext>& tls);
  // Begins to connect; writes would block until it is done. `server_name` is checked under TLS.
  static Result<Stream> connecting(const Address& address, const std::shared_ptr<TlsContext>& tls,
                                   const std::string& server_name);

  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&&) noexcept = default;

  int fd() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }

  // Reads at most `size` bytes. A short read of a plain connection means that nothing is left.
  IoResult read(char* data, std::size_t size);
  // Writes what fits: less than all means that the connection is full, and that a writable event
  // follows. Several pieces go out in one segment where possible.
  IoResult write(const iovec* pieces, int count);
  IoResult write(std::string_view bytes);

  // 0, or the errno that ended the connecting. Call after the first writable event.
  int connect_error() const;
  // Ends our side, so that the peer knows that nothing was cut off: under TLS by close_notify, then
  // the socket. WouldBlock: call again when it can be written to.
  IoResult::Status end_writing();
  // Closes with a reset instead of an orderly end: the peer must not take what it has for whole.
  void reset_on_close();
  void close();
  // What is wrong with the peer's certificate; empty: nothing, or none was seen.
  std::string_view distrust() const;
  bool tls() const { return ssl_ != nullptr; }
  // Under TLS, whether the next that there is to read is the peer's close_notify: it may come long
  // before the end of the socket. Takes nothing.
  bool peer_ended();
  // Bytes can go to and fro: plain, or the handshake is over.
  bool secured() const;

 private:
  struct SslFree {
    void operator()(ssl_st* ssl) const;
  };

  IoResult write_secured(const iovec* pieces, int count);

  Fd fd_;
  std::unique_ptr<ssl_st, SslFree> ssl_;
};

// Shared: others that listen shared, in this process or another, may have the same port; each has a
// queue of its own (SO_REUSEPORT).
enum class Sharing : std::uint8_t { Alone, Shared };

// A listening socket, non-blocking. An error when somebody else listens there.
Result<Fd> listen_on(const Address& address, Sharing sharing = Sharing::Alone,
                     int backlog = 4096);

// The next waiting connection, or an empty Fd and errno; EAGAIN: none waits. TCP_NODELAY is set.
Fd accept_from(int listener, Address& peer);

// The address a socket is bound to (to learn the port after binding port 0).
Address local_address(int fd);

}  // namespace signalbox::net
