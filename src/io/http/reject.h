// SPDX-License-Identifier: Apache-2.0
// Why a message was refused. The connection that carried it is closed: nothing behind a refused
// message can be trusted.
#pragma once

#include <string_view>

namespace signalbox::http {

// Whose message is read. A wrong request is the client's fault (400, 413, 414, 417, 431, 505); a
// wrong response is the engine's, and its status is always 502.
enum class Side { Request, Response };

struct Reject {
  int status = 0;           // 0: nothing was refused
  std::string_view reason;  // static text; a sentence for the sender
};

}  // namespace signalbox::http
