-- The protocol's Text as a string: it comes as one, as base64, or as a blob that is read in pages.
local M = {}

local VALUE = {}
for i, c in ipairs(vim.fn.split('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', '\\zs')) do
  VALUE[c:byte()] = i - 1
end

function M.decode64(text)
  local out, bits, count = {}, 0, 0
  for i = 1, #text do
    local value = VALUE[text:byte(i)]
    if value then
      bits, count = bits * 64 + value, count + 6
      if count >= 8 then
        count = count - 8
        local unit = 2 ^ count
        out[#out + 1] = string.char(math.floor(bits / unit))
        bits = bits % unit
      end
    end
  end
  return table.concat(out)
end

--- done(err, string)
function M.whole(client, text, done)
  if text == nil or type(text) == 'string' then
    return done(nil, text or '')
  elseif text.base64 then
    return done(nil, M.decode64(text.base64))
  end
  local parts = {}
  local function page(offset)
    client:request('blob/read', { id = text.blob.id, offset = offset }, function(err, read)
      if err then
        return done(err)
      end
      parts[#parts + 1] = read.base64 and M.decode64(read.base64) or read.text or ''
      if not read.eof then
        return page(read.nextOffset)
      end
      client:request('blob/free', { id = text.blob.id }, function() end)
      done(nil, table.concat(parts))
    end)
  end
  page(0)
end

--- A value that may have travelled as a blob; done(err, value)
function M.value(client, value, done)
  if type(value) ~= 'table' or not value.blob then
    return done(nil, value)
  end
  M.whole(client, value, function(err, json)
    if err then
      return done(err)
    end
    done(nil, vim.json.decode(json, { luanil = { object = true, array = true } }))
  end)
end

--- Output as lines for a buffer: no escape sequences, of a line that was written over only what was left of it.
function M.lines(output)
  local plain = output:gsub('\27%[[0-9;:?]*[ -/]*[@-~]', ''):gsub('\27%][^\7\27]*[\7\27]\\?', '')
  if plain:find('[^\n]$') then
    plain = plain .. '\n'
  end
  -- not by vim.split: of 50,000 lines LuaJIT 2.1 sometimes gives its vim.validate a key that is not there
  local lines = {}
  for line in plain:gmatch('([^\n]*)\n') do
    line = line:gsub('\r+$', ''):gsub('^.*\r', '')
    lines[#lines + 1] = line:gsub('%z', '^@'):gsub('[\1-\8\11\12\14-\31]', '')
  end
  return lines
end

return M
