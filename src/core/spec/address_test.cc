// SPDX-License-Identifier: Apache-2.0
// Goal: one reading of every address. Method: tables of what is accepted, in canonical form, and of
// what is refused; spellings by which others were led to metadata services are among them.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <utility>

#include "core/spec/address.h"
#include "core/spec/nearest.h"

namespace signalbox::spec {
namespace {

TEST(Url, AcceptsSchemeHostAndPort) {
  const std::pair<const char*, const char*> table[] = {
      {"http://10.0.0.7:8000", "http://10.0.0.7:8000"},
      {"http://10.0.0.7", "http://10.0.0.7:80"},
      {"https://Engines.Example", "https://engines.example:443"},
      {"HTTP://localhost:1/", "http://localhost:1"},
      {"http://vllm_0.ml:8000", "http://vllm_0.ml:8000"},
      {"http://[::1]:8000", "http://[::1]:8000"},
      {"http://[FD00:0:0::1]", "http://[fd00::1]:80"},
      {"http://[::ffff:10.0.0.7]:8000", "http://10.0.0.7:8000"},
      {"http://x1:65535", "http://x1:65535"},
  };
  for (const auto& [written, canonical] : table) {
    const auto url = parse_url(written);
    ASSERT_TRUE(url) << written << ": " << url.error().message;
    EXPECT_EQ(to_string(*url), canonical);
    EXPECT_EQ(*parse_url(to_string(*url)), *url);
  }
}

TEST(Url, RefusesEveryOtherSpelling) {
  const std::pair<const char*, const char*> table[] = {
      {"", "has no scheme"},
      {"10.0.0.7:8000", "has no scheme"},
      {"ftp://h", "other than http"},
      {"http://", "has no host"},
      {"http://:80", "has no host"},
      {"http://h:", "port outside"},
      {"http://h:0", "port outside"},
      {"http://h:65536", "port outside"},
      {"http://h:080", "port outside"},
      {"http://h:8000x", "port outside"},
      {"http://h:80:80", "port outside"},
      {"http://h/v1", "remove `/v1`"},
      {"http://h?x=1", "remove `?x=1`"},
      {"http://h#x", "remove `#x`"},
      {"http://user:secret@h", "names a user"},
      {"http://10.0.0.7\\@h", "names a user"},
      {"http://h\\x", "backslash"},
      {"http:\\\\h", "backslash"},
      {"http:///h", "remove"},
      {"http://h%2e", "no DNS name"},
      {"http://h .x", "no DNS name"},
      {"http://h.", "no DNS name"},
      {"http://.h", "no DNS name"},
      {"http://-h", "no DNS name"},
      {"http://h\xC3\xA9", "no DNS name"},
      {"http://127.1", "oddly"},
      {"http://0177.0.0.1", "oddly"},
      {"http://0x7f.0.0.1", "oddly"},
      {"http://2130706433", "oddly"},
      {"http://0x7f000001", "oddly"},
      {"http://10.0.0.256", "oddly"},
      {"http://1.2.3.4.5", "oddly"},
      {"http://[::1", "is no URL"},
      {"http://[::1]x", "is no URL"},
      {"http://[10.0.0.7]", "no IPv6"},
      {"http://[fe80::1%eth0]", "no IPv6"},
      {"http://[1:2:3]", "no IPv6"},
      {"http://0.0.0.0:8000", "unspecified"},
      {"http://[::]:8000", "unspecified"},
      {"http://169.254.169.254", "metadata"},
      {"http://169.254.170.2", "metadata"},
      {"http://[::ffff:169.254.169.254]", "metadata"},
      {"http://[::ffff:a9fe:a9fe]", "metadata"},
      {"http://[64:ff9b::a9fe:a9fe]", "hides"},
      {"http://[2002:a9fe:a9fe::]", "hides"},
      {"http://[::169.254.169.254]", "hides"},
      {"http://[fd00:ec2::254]", "metadata"},
      {"http://[fe80::1]", "metadata"},
      {"http://100.100.100.200", "metadata"},
      {"http://Metadata.Google.Internal", "metadata"},
      {"http://224.0.0.1", "multicast"},
      {"http://255.255.255.255", "multicast"},
  };
  for (const auto& [written, what] : table) {
    const auto url = parse_url(written);
    ASSERT_FALSE(url) << written;
    EXPECT_NE(url.error().message.find(what), std::string::npos)
        << written << ": " << url.error().message;
  }
}

TEST(Url, NeverRepeatsAPassword) {
  EXPECT_EQ(parse_url("http://me:sk-secret@h").error().message.find("sk-secret"),
            std::string::npos);
}

TEST(Address, AcceptsNumericHostsAndLocalhost) {
  for (const char* good : {"127.0.0.1:8080", "[::1]:8080", "localhost:0", "0.0.0.0:80", "[::]:1"}) {
    const auto address = parse_address(good);
    ASSERT_TRUE(address) << good;
    EXPECT_EQ(to_string(*address), good);
  }
  for (const char* bad : {"", "8080", ":8080", "127.0.0.1", "127.0.0.1:", "::1:8080", "host:80",
                          "127.0.0.1:65536", "[127.0.0.1]:80", "127.1:80"}) {
    EXPECT_FALSE(parse_address(bad)) << bad;
  }
  EXPECT_TRUE(is_loopback(*parse_address("localhost:80")));
  EXPECT_TRUE(is_loopback(*parse_address("127.9.9.9:80")));
  for (const char* far : {"0.0.0.0:80", "[::]:80", "10.0.0.1:80", "128.0.0.1:80"}) {
    EXPECT_FALSE(is_loopback(*parse_address(far))) << far;
  }
}

TEST(Cidr, IsANetworkAndNeverEverybody) {
  EXPECT_EQ(to_string(*parse_cidr("10.0.0.0/8")), "10.0.0.0/8");
  EXPECT_EQ(to_string(*parse_cidr("10.1.2.3")), "10.1.2.3/32");
  EXPECT_EQ(to_string(*parse_cidr("fd00::/8")), "fd00::/8");
  for (const char* bad : {"*", "0.0.0.0/0", "::/0", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1",
                          "10.0.0.0/08", "10.0.0.1/8", "host/8", ""}) {
    EXPECT_FALSE(parse_cidr(bad)) << bad;
  }
  const Cidr net = *parse_cidr("10.0.0.0/9");
  EXPECT_TRUE(contains(net, *parse_ip("10.127.0.1")));
  EXPECT_FALSE(contains(net, *parse_ip("10.128.0.1")));
  EXPECT_FALSE(contains(net, *parse_ip("::1")));
}

TEST(Origin, IsSchemeAndHostInLowerCase) {
  for (const char* good : {"*", "https://a.example", "http://localhost:3000", "http://[::1]:1"}) {
    EXPECT_TRUE(parse_origin(good)) << good;
  }
  for (const char* bad : {"", "a.example", "https://a.example/", "https://A.example", "null",
                          "https://*.example", "ftp://a"}) {
    EXPECT_FALSE(parse_origin(bad)) << bad;
  }
}

RC_GTEST_PROP(Ip, ReadsBackWhatItWrote,
              (std::array<std::uint8_t, 16> bytes, bool v4, unsigned zero)) {
  Ip ip{bytes, v4};
  // Runs of zeros are where spellings differ.
  for (std::size_t i = 0; i < 16; ++i) {
    if (v4 ? i >= 4 : ((zero >> (i / 2)) & 1u) != 0) ip.bytes[i] = 0;
  }
  const auto again = parse_ip(to_string(ip));
  RC_ASSERT(again.has_value());
  const bool mapped = !v4 && to_string(ip).starts_with("::ffff:") && again->v4;
  RC_ASSERT(mapped || *again == ip);
}

TEST(Nearest, FindsWhatWasMeant) {
  EXPECT_EQ(edit_distance("body", "boddy"), 1u);
  EXPECT_EQ(edit_distance("vlmm", "vllm"), 1u);
  EXPECT_EQ(edit_distance("abc", "ABC"), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(nearest("endpoint", {"engine", "endpoints"}), "endpoints");
  EXPECT_EQ(nearest("xyz", {"engine", "endpoints"}), "");
  EXPECT_EQ(suggestion("q", {"engine", "role"}), "; write one of `engine`, `role`.");
  EXPECT_EQ(quote("a\nb"), "`a?b`");
  EXPECT_EQ(quote(std::string(59, 'a') + "\xC3\xA9"), "`" + std::string(59, 'a') + "...`");
}

}  // namespace
}  // namespace signalbox::spec
