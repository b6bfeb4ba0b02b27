// SPDX-License-Identifier: Apache-2.0
// Goal: one reading of the request target, and a strict Host.
// Method: examples; refusals on the wire are in payload_classes_test.cc.
#include "io/http/target.h"

#include <gtest/gtest.h>

namespace signalbox::http {
namespace {

TEST(Target, SplitsPathAndQueryAtTheFirstQuestionMark) {
  const auto t = parse_target(Method::Get, "/v1/models/org%2Fname:tag?a=b?c", "h");
  ASSERT_TRUE(t);
  EXPECT_EQ(t->form, Target::Form::Origin);
  EXPECT_EQ(t->path, "/v1/models/org%2Fname:tag");
  EXPECT_EQ(t->query, "a=b?c");
  EXPECT_EQ(percent_decode(t->path.substr(11)), "org/name:tag");
}

TEST(Target, TakesDotsThatAreNoSegments) {
  for (const char* path : {"/.well-known/x", "/a..b/...", "/v1/models/qwen2.5", "/a/.b",
                           "/%2e%2e%2e"}) {
    EXPECT_TRUE(parse_target(Method::Get, path, "h")) << path;
  }
}

TEST(Target, RefusesWhatTwoReadersCouldUnderstandDifferently) {
  for (const char* target :
       {"/..", "/.", "/a/./b", "/a/..", "/a/%2e", "/%2E%2e/", "/.%2e", "//a", "", "a", "/%", "/%0",
        "/%g0", "/a?%zz", "http:/a", "http:///a", "http://h:80/", "http://u:p@h/", "*", "/\"",
        "/{"}) {
    EXPECT_FALSE(parse_target(Method::Get, target, "h")) << target;
  }
}

TEST(Target, TheAuthorityOfAnAbsoluteFormIsTheHost) {
  EXPECT_TRUE(parse_target(Method::Get, "http://H:8080/x", "h:8080"));
  EXPECT_FALSE(parse_target(Method::Get, "http://h:8080/x", "h"));
  EXPECT_FALSE(parse_target(Method::Get, "http://h/x", ""));
}

TEST(Host, IsAStrictNameOrAddressWithAPort) {
  for (const char* host : {"a", "a.b.", "127.0.0.1", "a:0", "a:65535", "[::]", "[::1]:8080",
                           "[2001:db8::1.2.3.4]", "[1:2:3:4:5:6:7:8]", "my_engine-0.svc"}) {
    EXPECT_TRUE(is_host(host)) << host;
  }
  for (const char* host :
       {"", ":80", "a:", "a:65536", "a:080808", "a:+1", "a b", "a/b", "a,b", "u@a", "%61", "[]",
        "[:]", "[::1", "::1", "[::1]x", "[::g]", "[1:2]", "[::1%25eth0]", "[1:2:3:4:5:6:7:8:9]",
        "[1:2:3:4:5:6:7::8]", "[:::]", "[1::2::3]", "[12345::]", "[::1.2.3]", "a\\b", "a#b",
        ".", "..", "...", ".a", "a..b", "a..", "..:80"}) {
    EXPECT_FALSE(is_host(host)) << host;
  }
}

TEST(PercentDecode, RefusesBrokenEscapes) {
  EXPECT_EQ(percent_decode("a+b%20c%C3%a9"), "a+b c\xc3\xa9");
  for (const char* text : {"%", "%1", "%1g", "a%"}) EXPECT_EQ(percent_decode(text), std::nullopt);
}

}  // namespace
}  // namespace signalbox::http
