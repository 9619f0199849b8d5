-- What of a buffer is to run: { first, last, text }, lines from 1.
local M = {}

M.cell = '^%s*[#/%-]+ ?%%%%' -- # %%, // %%, -- %%

M.languages = { python = 'python', javascript = 'node', typescript = 'typescript', sh = 'bash', bash = 'bash' }

function M.language(buffer)
  return M.languages[vim.bo[buffer].filetype]
end

-- The indentation that all lines share goes: a part of a function runs by itself.
local function dedented(lines)
  local shared
  for _, line in ipairs(lines) do
    if line:match('%S') then
      local own = line:match('^[ \t]*')
      while shared and own:sub(1, #shared) ~= shared do
        shared = shared:sub(1, -2)
      end
      shared = shared or own
    end
  end
  return vim.tbl_map(function(line)
    return line:sub(#(shared or '') + 1)
  end, lines), #(shared or '')
end

function M.lines(buffer, first, last)
  local lines, indent = dedented(vim.api.nvim_buf_get_lines(buffer, first - 1, last, false))
  return { first = first, last = last, indent = indent, text = table.concat(lines, '\n') .. '\n' }
end

--- The cell around a line: from a line that begins one to the line before the next.
function M.around(buffer, line)
  local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  local first, last = line, line
  while first > 1 and not lines[first]:match(M.cell) do
    first = first - 1
  end
  while last < #lines and not lines[last + 1]:match(M.cell) do
    last = last + 1
  end
  return M.lines(buffer, first, last)
end

return M
