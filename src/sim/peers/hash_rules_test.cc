// SPDX-License-Identifier: Apache-2.0
// Goal: hashing sends equal keys to equal places, moves few when somebody leaves, and prefix hash
// keeps its bound. Method: keys counted; loads set by hand at the bound's two sides.
#include "sim/peers/desk_for_test.inc"
#include "sim/peers/hash_ring.h"

namespace signalbox::peers {
namespace {

TEST(HashRing, OnlyKeysOfWhoLeavesMove) {
  HashRing ring;
  std::vector<Slot> all;
  for (Slot slot = 0; slot < 8; ++slot) {
    ring.add(slot, stir(5, slot));
    all.push_back(slot);
  }
  std::vector<Slot> without = all;
  without.erase(without.begin() + 3);
  std::vector<int> owned(8);
  int moved = 0;
  for (std::uint64_t key = 0; key < 4'000; ++key) {
    const Slot before = ring.find(key, all);
    ++owned[before];
    const Slot after = ring.find(key, without);
    moved += before != after;
    if (before != 3) {
      EXPECT_EQ(before, after);
    }
  }
  EXPECT_EQ(moved, owned[3]);
  for (const int n : owned) EXPECT_NEAR(n, 500, 200);
  // Who left is not found; who is not on the ring is the way out.
  ring.remove(3);
  for (std::uint64_t key = 0; key < 100; ++key) EXPECT_NE(ring.find(key, all), 3u);
  EXPECT_EQ(HashRing{}.find(1, all), 0u);
}

TEST(PrefixHash, TheFirst256TokensDecide) {
  Desk desk(prefix_hash(), 8);
  const Slot home = desk.slot(prompt({{1, 100}, {2, 200}, {3, 400}}));
  EXPECT_EQ(desk.slot(prompt({{1, 100}, {2, 200}, {4, 4'000}})), home);
  std::vector<bool> seen(8);
  for (std::uint64_t other = 10; other < 60; ++other) {
    seen[desk.slot(prompt({{1, 100}, {other, 200}, {3, 400}}))] = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 8);
}

// From the source's own test: total 100 over 4 workers; average with the new one 25.25, bound
// 31.56.
TEST(PrefixHash, BeyondTheBoundTheLeastLoadedWithinIt) {
  Desk desk(prefix_hash(), 4);
  const auto pieces = prompt({{1, 512}});
  const Slot home = desk.slot(pieces);
  std::vector<Slot> others;
  for (const Slot slot : desk.all) {
    if (slot != home) others.push_back(slot);
  }
  const auto load = [&](int at_home, int a, int b, int c) {
    desk.fleet[home].in_flight = at_home;
    desk.fleet[others[0]].in_flight = a;
    desk.fleet[others[1]].in_flight = b;
    desk.fleet[others[2]].in_flight = c;
  };
  load(31, 23, 23, 23);
  EXPECT_EQ(desk.slot(pieces), home);
  load(32, 22, 20, 26);
  EXPECT_EQ(desk.slot(pieces), others[1]);
  load(0, 0, 0, 0);
  EXPECT_EQ(desk.slot(pieces), home);
}

TEST(SessionHash, TheKeyDecidesWhateverTheLoad) {
  Desk desk(session_hash(), 8);
  const Slot home = desk.choose({}, 42).slot;
  desk.fleet[home].in_flight = 10'000;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(desk.choose(prompt({{7, 512}}), 42).slot, home);
  std::vector<bool> seen(8);
  for (std::uint64_t key = 1; key < 60; ++key) seen[desk.choose({}, key).slot] = true;
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 8);
  std::vector<bool> drawn(8);  // without a key
  for (int i = 0; i < 200; ++i) drawn[desk.choose({}, 0).slot] = true;
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), true), 8);
}

}  // namespace
}  // namespace signalbox::peers
