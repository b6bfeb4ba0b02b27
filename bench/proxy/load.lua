-- SPDX-License-Identifier: Apache-2.0
-- wrk script: the file BODIES holds one request body a line; they are sent in turn. Ends with one
-- line "JSON {...}": answers, elapsed microseconds, failures.
local bodies, turn = {}, 0
for line in io.lines(os.getenv("BODIES")) do bodies[#bodies + 1] = line end
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = bodies[1]
if #bodies > 1 then
  local formatted = {}
  function init()
    for i, body in ipairs(bodies) do formatted[i] = wrk.format(nil, nil, nil, body) end
  end
  function request()
    turn = turn % #formatted + 1
    return formatted[turn]
  end
end
function done(summary)
  local e = summary.errors
  io.write(string.format('JSON {"answers":%d,"us":%d,"failures":%d}\n', summary.requests,
    summary.duration, e.status + e.connect + e.read + e.write + e.timeout))
end
