-- Runs lines, cells and files in boxes, or in a kernel of the project.
local output = require('kern.output')
local region = require('kern.region')
local rich = require('kern.rich')
local session = require('kern.session')
local text = require('kern.text')

local M = {}
local running = {} -- { id, kernel?, view } of runs that have not ended, oldest first

--- options: program, session (params of session/open), output ('under' or 'split'), lines, images, cell, languages.
function M.setup(options)
  options = options or {}
  vim.validate({
    program = { options.program, 'string', true }, session = { options.session, 'table', true }, lines = { options.lines, 'number', true }, cell = { options.cell, 'string', true },
    languages = { options.languages, 'table', true },
    output = { options.output, function(v) return v == nil or v == 'under' or v == 'split' end, "'under' or 'split'" },
    images = { options.images, function(v) return v == nil or type(v) == 'boolean' or type(v) == 'function' end, 'true, false or a function' },
  })
  for name in pairs(options) do
    if not vim.tbl_contains({ 'program', 'session', 'output', 'lines', 'images', 'cell', 'languages' }, name) then
      error(('kern: there is no setting %s'):format(name), 2)
    end
  end
  session.settings = options
  output.under = options.output ~= 'split'
  output.lines = options.lines or output.lines
  region.cell = options.cell or region.cell
  region.languages = vim.tbl_extend('force', region.languages, options.languages or {})
  if options.images ~= nil then
    rich.images = options.images
  end
end

local function said(err)
  return ('%s: %s%s'):format(err.reason, err.message, err.hint and (' (%s)'):format(err.hint) or '')
end

local function refuse(words)
  vim.notify('kern: ' .. words, vim.log.levels.ERROR)
end

local function status_of(result)
  local took = ('%d ms'):format(result.durationMs)
  if result.fault then
    return ('%s: %s, %s'):format(result.fault.type, result.fault.message, took)
  elseif result.cellStatus == 'interrupted' then
    return 'interrupted, ' .. took
  end
  return (result.success and 'ok, ' or ('exit code %d, '):format(result.exitCode)) .. took
end

-- The innermost frame of our own file is where the reader can do something.
local function diagnose(view, err, filename)
  for i = #(err.frames or {}), 1, -1 do
    local frame = err.frames[i]
    if frame.file == filename then
      return output.diagnose(view, frame.line, frame.column, ('%s: %s'):format(err.name, err.message))
    end
  end
end

-- Chunks are best effort; the result has all of it.
local function whole_output(client, view, result, done)
  if view.bytes >= result.stdoutBytes + result.stderrBytes then
    return done()
  end
  text.whole(client, result.stdout, function(_, out)
    text.whole(client, result.stderr, function(_, err)
      view.chunks = { out or '', err or '' }
      done()
    end)
  end)
end

local function show(client, view, result, filename)
  whole_output(client, view, result, function()
    text.value(client, result.error, function(_, err)
      if err then
        diagnose(view, err, filename)
      end
      text.value(client, result.results, function(_, results)
        rich.lines(client, results or {}, view, function(extra)
          text.value(client, result.runtimeNotes, function(_, notes)
            for _, note in ipairs(notes or {}) do
              table.insert(extra, 'kern: ' .. note.message)
            end
            output.finish(view, status_of(result), extra)
          end)
        end)
      end)
    end)
  end)
end

local function execute(one, part, params, method)
  local client = session.client()
  table.insert(running, one)
  one.id = session.run(method, params, function(chunk)
    output.take(one.view, chunk)
  end, function(err, result)
    running = vim.tbl_filter(function(other) return other ~= one end, running)
    if err then
      return output.finish(one.view, said(err))
    end
    show(client, one.view, result, params.filename)
  end)
end

--- Runs lines of a buffer: in a kernel of their language, or with boxed in a fresh box.
local function run(buffer, part, boxed)
  local language = region.language(buffer)
  if not language then
    return refuse(('no language for files of type "%s"; the setting languages can name one'):format(vim.bo[buffer].filetype))
  end
  local file = vim.api.nvim_buf_get_name(buffer)
  local name = file ~= '' and vim.fn.fnamemodify(file, ':t') or '[no name]'
  local view = output.begin(buffer, part, ('%s:%d-%d'):format(name, part.first, part.last))
  if not output.under and #vim.fn.win_findbuf(vim.fn.bufnr('kern://output')) == 0 then
    output.toggle()
  end
  local function failed(err)
    output.finish(view, said(err))
  end
  session.session(session.project(file), function(err, opened)
    if err then
      return failed(err)
    end
    if boxed or language == 'typescript' then -- there is no kernel of it
      return execute({ view = view }, part, { sessionId = opened.id, language = language, code = part.text, filename = name, firstLine = part.first, merge = true }, 'run/code')
    end
    session.kernel(opened, language, function(wrong, kernel)
      if wrong then
        return failed(wrong)
      end
      -- empty lines in front: whoever names a line names that of the file
      local code = ('\n'):rep(part.first - 1) .. part.text
      execute({ view = view, kernel = kernel }, part, { kernelId = kernel.id, code = code, filename = name, allowInput = kernel.asks }, 'kernel/run')
    end)
  end)
end

--- first, last: lines from 1; without them the cell around the cursor.
function M.run(first, last, boxed)
  local buffer = vim.api.nvim_get_current_buf()
  run(buffer, first and region.lines(buffer, first, last) or region.around(buffer, vim.fn.line('.')), boxed)
end

--- The whole file, as it is in the editor, in a fresh box; with kept in the kernel.
function M.run_file(kept)
  local buffer = vim.api.nvim_get_current_buf()
  run(buffer, region.lines(buffer, 1, vim.api.nvim_buf_line_count(buffer)), not kept)
end

--- Stops the oldest run that goes on: a cell is interrupted and its kernel keeps its state, a box is killed.
function M.interrupt()
  local one, client = running[1], session.client()
  if not one then
    return vim.notify('kern: nothing runs')
  end
  if one.kernel then
    client:request('kernel/interrupt', { kernelId = one.kernel.id }, function(err)
      if err then
        refuse(said(err))
      end
    end)
  else
    client:notify('$/cancel', { id = one.id })
  end
end

--- A new interpreter for the language of this buffer; done(err) when it is there.
function M.restart(done)
  local buffer = vim.api.nvim_get_current_buf()
  local kernel = session.running_kernel(session.project(vim.api.nvim_buf_get_name(buffer)), region.language(buffer))
  if not kernel then
    return vim.notify('kern: there is no kernel to restart')
  end
  session.client():request('kernel/restart', { kernelId = kernel.id }, function(err)
    if err then
      refuse(said(err))
    else
      vim.notify('kern: the kernel is new')
    end
    if done then
      done(err)
    end
  end)
end

function M.clear()
  output.clear(vim.api.nvim_get_current_buf())
end

M.toggle_output = output.toggle
M.stop = session.stop

--- For 'statusline': empty until something has run.
function M.statusline()
  return session.state == 'off' and '' or ('kern: %s'):format(#running > 0 and 'busy' or session.state)
end

return M
