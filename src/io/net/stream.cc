// SPDX-License-Identifier: Apache-2.0
// System calls and OpenSSL behind one read and one write.
#include "io/net/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace signalbox::net {
namespace {

using Status = IoResult::Status;

void set_nodelay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// The plain system calls: the C library's wrappers are cancellation points, which costs some 1 % of
// a relayed request and serves nobody here.
ssize_t receive(int fd, char* data, std::size_t size) {
  return ::syscall(SYS_recvfrom, fd, data, size, 0, nullptr, nullptr);
}
ssize_t send_bytes(int fd, const char* data, std::size_t size) {
  return ::syscall(SYS_sendto, fd, data, size, MSG_NOSIGNAL, nullptr, 0);
}

// A head and a small body go out as one copy: cheaper than having the kernel gather them.
constexpr std::size_t kGathered = 4096;

IoResult from_errno() {
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {Status::WouldBlock, 0};
  if (errno == ENOTCONN || errno == EINPROGRESS) return {Status::WouldBlock, 0};
  return {Status::Failed, 0};
}

IoResult from_ssl(ssl_st* ssl, int returned) {
  const int error = SSL_get_error(ssl, returned);
  ERR_clear_error();
  switch (error) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return {Status::WouldBlock, 0};
    case SSL_ERROR_ZERO_RETURN: return {Status::Closed, 0};
    default: return {Status::Failed, 0};
  }
}

Result<ssl_st*> make_ssl(TlsContext& context, int fd) {
  SSL* ssl = SSL_new(context.raw());
  if (ssl == nullptr || SSL_set_fd(ssl, fd) != 1) return internal("OpenSSL cannot make a session");
  return ssl;
}

// The certificate must name what we meant to reach; names go into SNI, numeric addresses do not.
void expect_peer(ssl_st* ssl, const std::string& server_name) {
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), server_name.c_str()) == 1) return;
  SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
           const_cast<char*>(server_name.c_str()));
  SSL_set1_host(ssl, server_name.c_str());
}

}  // namespace

void Stream::SslFree::operator()(ssl_st* ssl) const { SSL_free(ssl); }

Result<Stream> Stream::accepted(Fd fd, const std::shared_ptr<TlsContext>& tls) {
  Stream stream;
  stream.fd_ = std::move(fd);
  if (tls) {
    TRY_ASSIGN(ssl_st* ssl, make_ssl(*tls, stream.fd()));
    stream.ssl_.reset(ssl);
    SSL_set_accept_state(ssl);
  }
  return stream;
}

Result<Stream> Stream::connecting(const Address& address, const std::shared_ptr<TlsContext>& tls,
                                  const std::string& server_name) {
  Stream stream;
  stream.fd_ = Fd(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!stream.fd_) return internal(std::string("socket: ") + std::strerror(errno));
  set_nodelay(stream.fd());
  if (::connect(stream.fd(), address.raw(), address.length()) != 0 && errno != EINPROGRESS) {
    // No port or buffer left here is no fault of theirs.
    const bool ours = errno == EADDRNOTAVAIL || errno == ENOBUFS || errno == EAGAIN;
    return Error{Code::BadUpstream, ours ? Source::Us : Source::Engine, true,
                 "connect to " + address.text() + ": " + std::strerror(errno)};
  }
  if (tls) {
    TRY_ASSIGN(ssl_st* ssl, make_ssl(*tls, stream.fd()));
    stream.ssl_.reset(ssl);
    SSL_set_connect_state(ssl);
    expect_peer(ssl, server_name);
  }
  return stream;
}

std::string_view Stream::distrust() const {
  const long found = ssl_ ? SSL_get_verify_result(ssl_.get()) : X509_V_OK;
  return found == X509_V_OK ? std::string_view{} : X509_verify_cert_error_string(found);
}

bool Stream::secured() const { return !ssl_ || SSL_is_init_finished(ssl_.get()) == 1; }

IoResult Stream::read(char* data, std::size_t size) {
  if (ssl_) {
    const int limit = static_cast<int>(std::min<std::size_t>(size, INT_MAX));
    const int got = SSL_read(ssl_.get(), data, limit);
    if (got > 0) return {Status::Ok, static_cast<std::size_t>(got)};
    return from_ssl(ssl_.get(), got);
  }
  const ssize_t got = receive(fd(), data, size);
  if (got > 0) return {Status::Ok, static_cast<std::size_t>(got)};
  if (got == 0) return {Status::Closed, 0};
  return from_errno();
}

// Record by record: OpenSSL writes but one (16 KiB) a call.
IoResult Stream::write_secured(const iovec* pieces, int count) {
  std::size_t total = 0;
  for (int i = 0; i < count; ++i) {
    const char* data = static_cast<const char*>(pieces[i].iov_base);
    std::size_t left = pieces[i].iov_len;
    while (left > 0) {
      const auto most = static_cast<int>(std::min<std::size_t>(left, INT_MAX));
      const int put = SSL_write(ssl_.get(), data, most);
      if (put <= 0) {
        const IoResult why = from_ssl(ssl_.get(), put);  // takes the error off OpenSSL's queue, too
        return total > 0 ? IoResult{Status::Ok, total} : why;
      }
      data += put;
      left -= static_cast<std::size_t>(put);
      total += static_cast<std::size_t>(put);
    }
  }
  return {Status::Ok, total};
}

IoResult Stream::write(const iovec* pieces, int count) {
  if (ssl_) return write_secured(pieces, count);
  std::size_t total = 0;
  for (int i = 0; i < count; ++i) total += pieces[i].iov_len;
  if (total <= kGathered) {
    char buffer[kGathered];
    std::size_t at = 0;
    for (int i = 0; i < count; ++i) {
      if (pieces[i].iov_len > 0) std::memcpy(buffer + at, pieces[i].iov_base, pieces[i].iov_len);
      at += pieces[i].iov_len;
    }
    const ssize_t put = send_bytes(fd(), buffer, total);
    if (put >= 0) return {Status::Ok, static_cast<std::size_t>(put)};
    return from_errno();
  }
  std::size_t written = 0;
  for (int done = 0; done < count; done += IOV_MAX) {  // no more at once
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces + done);
    message.msg_iovlen = static_cast<std::size_t>(std::min(count - done, IOV_MAX));
    std::size_t wanted = 0;
    for (std::size_t i = 0; i < message.msg_iovlen; ++i) wanted += message.msg_iov[i].iov_len;
    const ssize_t put = ::sendmsg(fd(), &message, MSG_NOSIGNAL);
    if (put < 0) return written > 0 ? IoResult{Status::Ok, written} : from_errno();
    written += static_cast<std::size_t>(put);
    if (static_cast<std::size_t>(put) < wanted) break;
  }
  return {Status::Ok, written};
}

IoResult Stream::write(std::string_view bytes) {
  const iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
  return write(&piece, 1);
}

int Stream::connect_error() const {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

bool Stream::peer_ended() {
  if (!ssl_ || !secured()) return false;
  char byte = 0;
  const int got = SSL_peek(ssl_.get(), &byte, 1);
  return got <= 0 && from_ssl(ssl_.get(), got).status == Status::Closed;
}

IoResult::Status Stream::end_writing() {
  if (secured() && ssl_ && (SSL_get_shutdown(ssl_.get()) & SSL_SENT_SHUTDOWN) == 0) {
    const int said = SSL_shutdown(ssl_.get());
    if (said < 0 && from_ssl(ssl_.get(), said).status == Status::WouldBlock) {
      return Status::WouldBlock;
    }
    ERR_clear_error();
  }
  ::shutdown(fd(), SHUT_WR);
  return Status::Ok;
}

void Stream::reset_on_close() {
  if (ssl_) SSL_set_quiet_shutdown(ssl_.get(), 1);
  const linger hard{1, 0};
  ::setsockopt(fd(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
}

void Stream::close() {
  if (ssl_ && fd_) SSL_shutdown(ssl_.get());
  ERR_clear_error();
  ssl_.reset();
  fd_.reset();
}

Result<Fd> listen_on(const Address& address, Sharing sharing, int backlog) {
  Fd fd(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return internal(std::string("socket: ") + std::strerror(errno));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (sharing == Sharing::Shared) {
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  }
  if (::bind(fd.get(), address.raw(), address.length()) != 0 || ::listen(fd.get(), backlog) != 0) {
    return Error{Code::InvalidArgument, Source::Client, false,
                 "Cannot listen on " + address.text() + ": " + std::strerror(errno) +
                     ". Choose a free port or stop who holds it."};
  }
  return fd;
}

Fd accept_from(int listener, Address& peer) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  Fd fd(::accept4(listener, reinterpret_cast<sockaddr*>(&storage), &length,
                  SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd) {
    peer = Address::from(reinterpret_cast<sockaddr*>(&storage), length);
    set_nodelay(fd.get());
  }
  return fd;
}

Address local_address(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length);
  return Address::from(reinterpret_cast<sockaddr*>(&storage), length);
}

}  // namespace signalbox::net
