-- :checkhealth kern
local session = require('kern.session')
local text = require('kern.text')

local M = {}

local health = vim.health or require('health') -- its functions were called report_… before 0.10
local function teller(name)
  return health[name] or health['report_' .. name]
end
local say = { start = teller('start'), ok = teller('ok'), warn = teller('warn'), fail = teller('error') }

function M.check()
  say.start('kern')
  local client, wrong = session.client()
  if not client then
    return say.fail(wrong.message)
  end
  local checks, err
  client:request('host/doctor', {}, function(failed, result)
    err = failed
    if result then
      text.value(client, result.checks, function(lost, value)
        err, checks = lost, value
      end)
    end
  end)
  if not vim.wait(20000, function() return err or checks end, 10) or err then
    return say.fail(err and err.message or 'the sidecar did not answer in 20 s')
  end
  for _, check in ipairs(checks) do
    local line = ('%s: %s'):format(check.id, check.found)
    local tell = say[check.status] or say.warn
    if check.status == 'ok' or not check.fix then
      tell(line)
    else
      tell(line, { check.fix })
    end
  end
end

return M
