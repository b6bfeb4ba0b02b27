// SPDX-License-Identifier: Apache-2.0
// What a TLS context is made of, as a text to compare: two contexts with the same digest show and
// trust the same.
#pragma once

#include <string>

struct ssl_ctx_st;

namespace signalbox::net {

// Of the certificates that are loaded: the own one with its chain (its key is determined by it) and
// those that are trusted. Take it before the context is used: a store gathers what it looks up.
std::string digest_of(ssl_ctx_st* context);

// Of the folders that the system's trust is looked up in while it is used: names and times. May
// differ although nothing of matter has changed.
std::string digest_of_system_trust();

}  // namespace signalbox::net
