-- What a run has written and what became of it: under its lines, in the buffer kern://output, errors as diagnostics.
local text = require('kern.text')

local M = { under = true, lines = 12 }

local RECENT_BYTES = 65536
local marks = vim.api.nvim_create_namespace('kern')
local errors = vim.api.nvim_create_namespace('kern-errors')
M.namespaces = { marks = marks, errors = errors }

local shown = {} -- id of the mark -> view, per buffer: shown[buffer][id]
local log -- the buffer kern://output
local newest -- the view whose lines end it

local function log_buffer()
  if not (log and vim.api.nvim_buf_is_valid(log)) then
    log = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(log, 'kern://output')
  end
  return log
end

--- Puts lines behind the first `from` ones, or behind all.
local function append(lines, from)
  local buffer = log_buffer()
  local empty = vim.api.nvim_buf_line_count(buffer) == 1 and vim.api.nvim_buf_get_lines(buffer, 0, 1, false)[1] == ''
  vim.api.nvim_buf_set_lines(buffer, empty and 0 or from or -1, -1, false, lines)
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(buffer), 0 })
  end
end

--- Opens the split with everything that was written, or closes it.
function M.toggle()
  local windows = vim.fn.win_findbuf(log_buffer())
  if #windows > 0 then
    return vim.api.nvim_win_close(windows[1], true)
  end
  local back = vim.api.nvim_get_current_win()
  vim.cmd('botright 12split')
  vim.api.nvim_win_set_buf(0, log_buffer())
  vim.api.nvim_win_set_cursor(0, { vim.api.nvim_buf_line_count(log_buffer()), 0 })
  vim.api.nvim_set_current_win(back)
end

local function place(view)
  local at = vim.api.nvim_buf_get_extmark_by_id(view.buffer, marks, view.id, { details = true })
  return at[1], at[3] and at[3].end_row
end

--- Removes what is shown for lines that overlap first..last (from 1); without them, everything.
function M.clear(buffer, first, last)
  for id, view in pairs(shown[buffer] or {}) do
    local from, to = place(view)
    if not from or not first or (from < last and to >= first - 1) then
      vim.api.nvim_buf_del_extmark(buffer, marks, id)
      shown[buffer][id] = nil
    end
  end
  local kept = vim.tbl_filter(function(one)
    return first and (one.lnum < first - 1 or one.lnum > last - 1)
  end, vim.diagnostic.get(buffer, { namespace = errors }))
  vim.diagnostic.set(errors, buffer, kept)
end

-- While code runs only what it wrote last is looked at: a drawing takes the same time however much there is.
local function recent(view)
  local bytes, from = 0, #view.chunks
  while from > 0 and bytes < RECENT_BYTES do
    bytes, from = bytes + #view.chunks[from], from - 1
  end
  return text.lines(table.concat(view.chunks, '', from + 1)), from > 0
end

local function all(view)
  return vim.list_extend(text.lines(table.concat(view.chunks)), view.extra or {})
end

local function draw_under(view, lines, cut)
  local from, to = place(view)
  if not from then
    return
  end
  local virtual, hidden = {}, #lines - 1 - M.lines
  for i, line in ipairs(lines) do
    if i > hidden or i == #lines then -- the last ones, as in a terminal
      table.insert(virtual, { { line, i == #lines and 'Comment' or 'Normal' } })
    end
  end
  if hidden > 0 or cut then
    table.insert(virtual, 1, { { ('… %smore lines: :KernOutput'):format(cut and '' or hidden .. ' '), 'Comment' } })
  end
  -- virtual lines hang on the last line, so the mark that has them is one of its own
  view.tail = vim.api.nvim_buf_set_extmark(view.buffer, marks, to, 0, { id = view.tail, virt_lines = virtual })
  shown[view.buffer][view.tail] = view
end

local function draw(view, lines, cut)
  table.insert(lines, '── ' .. view.status)
  if newest == view and (view.status ~= 'running' or #vim.fn.win_findbuf(log_buffer()) > 0) then
    append(lines, view.log_from)
  elseif view.status ~= 'running' then -- another run has begun meanwhile; what it has so far comes again at its end
    newest = nil
    append(vim.list_extend({ '── ' .. view.title }, lines))
  end
  if not vim.api.nvim_buf_is_valid(view.buffer) or not (shown[view.buffer] or {})[view.id] then
    return -- its lines have been run again, or are gone
  end
  if M.under then
    draw_under(view, lines, cut)
  end
end

--- A view of one run on the lines of a region.
function M.begin(buffer, region, title)
  M.clear(buffer, region.first, region.last)
  local view = { buffer = buffer, region = region, chunks = {}, bytes = 0, status = 'running', title = title }
  view.id = vim.api.nvim_buf_set_extmark(buffer, marks, region.first - 1, 0, { end_row = region.last - 1, end_col = 0 })
  shown[buffer] = shown[buffer] or {}
  shown[buffer][view.id] = view
  append({ '── ' .. title })
  newest, view.log_from = view, vim.api.nvim_buf_line_count(log_buffer())
  draw(view, {})
  return view
end

--- One run/output.
function M.take(view, params)
  view.bytes = view.bytes + params.bytes
  local chunk = params.base64 and text.decode64(params.base64) or params.text or ''
  table.insert(view.chunks, chunk)
  if not view.drawing then -- many chunks, one drawing
    view.drawing = true
    vim.defer_fn(function()
      view.drawing = false
      if view.status == 'running' then
        draw(view, recent(view))
      end
    end, 30)
  end
end

--- The end of a run: its status, and lines beside its output.
function M.finish(view, status, extra)
  view.status, view.extra = status, extra
  draw(view, all(view))
end

--- An error of the code at a line of the region (from 1 in the file as it was when the run began).
function M.diagnose(view, line, column, message)
  local from = place(view)
  if not from then
    return
  end
  local lnum = line - 1 + from - (view.region.first - 1) -- the lines may have moved meanwhile
  lnum = math.max(0, math.min(lnum, vim.api.nvim_buf_line_count(view.buffer) - 1))
  local all = vim.diagnostic.get(view.buffer, { namespace = errors })
  table.insert(all, { lnum = lnum, col = math.max(0, (column or 1) - 1 + view.region.indent), message = message, severity = vim.diagnostic.severity.ERROR, source = 'kern' })
  vim.diagnostic.set(errors, view.buffer, all)
end

return M
