-- One sidecar: requests and notifications as JSON lines. It ends with the editor, for its stdin does.
local uv = vim.loop

local Client = {}
Client.__index = Client

local DECODE = { luanil = { object = true, array = true } }

--- The program: what the settings or KERN_SIDECAR name, else the one in PATH. Nobody wants another than the one they named.
function Client.program(named)
  named = named or os.getenv('KERN_SIDECAR')
  if named and named ~= '' then
    if vim.fn.executable(named) == 1 then
      return named
    end
    return nil, ('%s is no program; KERN_SIDECAR or the setting program names it'):format(named)
  end
  local found = vim.fn.exepath('kern-sidecar')
  if found ~= '' then
    return found
  end
  return nil, 'there is no kern-sidecar in PATH; build it, and set KERN_SIDECAR or the setting program'
end

--- Starts a sidecar; on_notice(method, params) gets what it tells by itself, on_end() its end.
function Client.start(program, on_notice, on_end)
  local self = setmetatable({ next_id = 0, waiting = {}, parts = {}, abilities = {}, on_notice = on_notice, on_end = on_end }, Client)
  self.stdin, self.stdout = uv.new_pipe(false), uv.new_pipe(false)
  local handle, pid = uv.spawn(program, { args = { '--stdio' }, stdio = { self.stdin, self.stdout, nil } }, function()
    vim.schedule(function()
      self:lost()
    end)
  end)
  if not handle then
    return nil, ('%s does not start: %s'):format(program, pid)
  end
  self.handle, self.pid = handle, pid
  self.stdout:read_start(function(_, data)
    if data then
      self:take(data)
    else
      vim.schedule(function()
        self:lost()
      end)
    end
  end)
  self:request('initialize', {
    protocolVersion = 1,
    client = { name = 'kern.nvim', version = '0.1.0' },
    processId = uv.os_getpid(),
    capabilities = { maxLineBytes = 8388608 },
  }, function(_, welcome)
    for _, language in ipairs(welcome and welcome.capabilities.languages or {}) do
      self.abilities[language.name] = language
    end
  end)
  self:notify('initialized')
  return self
end

--- Bytes to lines; a line ends at a newline and nowhere else.
function Client:take(data)
  local from = 1
  while true do
    local at = data:find('\n', from, true)
    if not at then
      break
    end
    table.insert(self.parts, data:sub(from, at - 1))
    local line = table.concat(self.parts)
    self.parts, from = {}, at + 1
    vim.schedule(function()
      self:message(line)
    end)
  end
  if from <= #data then
    table.insert(self.parts, data:sub(from))
  end
end

function Client:message(line)
  local ok, message = pcall(vim.json.decode, line, DECODE)
  if not ok or type(message) ~= 'table' then
    return self:stop() -- whatever this is, it is no sidecar
  end
  if message.method then
    return self.on_notice(message.method, message.params or {})
  end
  local done = self.waiting[message.id]
  self.waiting[message.id] = nil
  if not done then
    return
  end
  if message.error then
    local data = message.error.data or {}
    done({ reason = data.reason or 'internal', message = message.error.message, hint = data.hint })
  else
    done(nil, message.result)
  end
end

function Client:send(message)
  message.jsonrpc = '2.0'
  self.stdin:write(vim.json.encode(message) .. '\n')
end

--- done(err, result); an err has reason, message, perhaps hint. Gives the id, for cancel.
function Client:request(method, params, done)
  if self.ended then
    done({ reason = 'sidecar_lost', message = 'the sidecar has ended' })
    return nil
  end
  self.next_id = self.next_id + 1
  self.waiting[self.next_id] = done
  self:send({ id = self.next_id, method = method, params = next(params) and params or vim.empty_dict() })
  return self.next_id
end

function Client:notify(method, params)
  if not self.ended then
    self:send({ method = method, params = params })
  end
end

function Client:lost()
  if self.ended then
    return
  end
  self.ended = true
  for _, pipe in ipairs({ self.stdin, self.stdout, self.handle }) do
    if not pipe:is_closing() then
      pipe:close()
    end
  end
  local waiting = self.waiting
  self.waiting = {}
  self.on_end()
  for _, done in pairs(waiting) do
    done({ reason = 'sidecar_lost', message = 'the sidecar has ended during the call; what it had done nobody can know' })
  end
end

function Client:stop()
  self:lost() -- its stdin is closed by this, and it ends
end

return Client
