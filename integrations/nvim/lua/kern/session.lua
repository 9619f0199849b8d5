-- One sidecar for the editor, in it a session for each project and a kernel for each language of a session.
local Client = require('kern.client')
local ask = require('kern.ask')

local M = { state = 'off' } -- off, idle, busy, dead: of the newest kernel
local client
local sessions = {} -- project directory -> session
local kernels = {} -- kernelId -> kernel
local runs = {} -- runId -> on_output
local count = 0

M.settings = {}

local function fresh_id(kind)
  count = count + 1
  return ('nvim-%s-%d'):format(kind, count)
end

-- Who does not answer ends the input. A cell that has ended meanwhile waits for nothing.
local function answer(wanted)
  ask.line(wanted.prompt, wanted.password, function(line)
    if client and runs[wanted.runId] then
      client:request('run/stdin', { runId = wanted.runId, text = line and line .. '\n', eof = not line or nil }, function() end)
    end
  end)
end

local function on_notice(method, params)
  if method == 'run/output' and runs[params.runId] then
    runs[params.runId](params)
  elseif method == 'run/inputWanted' and runs[params.runId] then
    answer(params)
  elseif method == 'kernel/state' and kernels[params.kernelId] then
    local kernel = kernels[params.kernelId]
    kernel.state, M.state = params.state, params.state
    if params.state == 'dead' then
      kernel.session.kernels[kernel.language] = nil -- the next cell opens another
      kernels[params.kernelId] = nil
    end
    vim.cmd('redrawstatus!')
  end
end

local function on_end()
  client, sessions, kernels, runs, M.state = nil, {}, {}, {}, 'off'
end

--- The sidecar, started if there is none: client, or nil and what is wrong.
function M.client()
  if client then
    return client
  end
  local program, wrong = Client.program(M.settings.program)
  if not program then
    return nil, { reason = 'program_not_found', message = wrong }
  end
  client, wrong = Client.start(program, on_notice, on_end)
  return client, wrong and { reason = 'program_not_found', message = wrong }
end

--- The directory of the project of a file: the nearest one above with .git, else the one of the file.
function M.project(file)
  local start = file ~= '' and vim.fn.fnamemodify(file, ':p:h') or vim.fn.getcwd()
  local above = vim.fn.escape(start, ' ,;') .. ';'
  local directory, file_of_worktree = vim.fn.finddir('.git', above), vim.fn.findfile('.git', above)
  if directory ~= '' then
    return vim.fn.fnamemodify(directory, ':p:h:h')
  end
  return file_of_worktree ~= '' and vim.fn.fnamemodify(file_of_worktree, ':p:h') or start
end

-- `owner[slot]` is what `open` makes, made once however many ask for it meanwhile.
local function once(owner, slot, open, done)
  local made = owner[slot]
  if made and made.ready then
    return done(nil, made)
  elseif made then
    return table.insert(made.asked, done)
  end
  made = { asked = { done } }
  owner[slot] = made
  open(made, function(err)
    made.ready = not err
    if err and owner[slot] == made then
      owner[slot] = nil
    end
    for _, one in ipairs(made.asked) do
      one(err, made)
    end
  end)
end

--- done(err, session); its boxes have the project as their working directory.
function M.session(project, done)
  local sidecar, wrong = M.client()
  if not sidecar then
    return done(wrong)
  end
  once(sessions, project, function(session, opened)
    session.kernels = {}
    local params = vim.tbl_extend('force', { workspace = project, workspaceTarget = project, trackFiles = false }, M.settings.session or {})
    params.sessionId = fresh_id('session')
    sidecar:request('session/open', params, function(err, result)
      session.id = result and result.sessionId
      opened(err)
    end)
  end, done)
end

--- done(err, kernel)
function M.kernel(session, language, done)
  once(session.kernels, language, function(kernel, opened)
    kernel.id, kernel.language, kernel.session = fresh_id('kernel'), language, session
    kernels[kernel.id] = kernel
    client:request('kernel/open', { kernelId = kernel.id, sessionId = session.id, language = language }, function(err, result)
      kernel.interpreter = result and result.interpreter
      kernel.asks = client and client.abilities[language].input
      if err then
        kernels[kernel.id] = nil
      end
      opened(err)
    end)
  end, done)
end

--- Sends run/code or kernel/run; on_output(params of run/output), done(err, result). Gives the id of the request.
function M.run(method, params, on_output, done)
  params.runId, params.stream = fresh_id('run'), 'live'
  runs[params.runId] = on_output
  return client:request(method, params, function(err, result)
    runs[params.runId] = nil
    done(err, result)
  end)
end

--- The kernel of a project that is there, or nil; starts nothing.
function M.running_kernel(project, language)
  local session = sessions[project]
  local kernel = session and session.kernels and session.kernels[language]
  return kernel and kernel.ready and kernel or nil
end

function M.stop()
  if client then
    client:stop()
  end
end

return M
