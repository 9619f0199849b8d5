-- Values and figures of a run as lines; images become files, whose paths are shown, and go to an image plugin when there is one.
local text = require('kern.text')

local M = { images = true }

local IMAGES = { ['image/png'] = 'png', ['image/jpeg'] = 'jpg', ['image/gif'] = 'gif', ['image/webp'] = 'webp' }
local TEXTS = { 'text/plain', 'text/markdown', 'text/latex', 'application/json', 'text/html' }
local count = 0

local function directory()
  local path = vim.fn.stdpath('cache') .. '/kern'
  vim.fn.mkdir(path, 'p', 448) -- 0700
  return path
end

local function save(bytes, extension)
  count = count + 1
  local path = ('%s/%d-%d.%s'):format(directory(), vim.loop.os_getpid(), count, extension)
  local file, wrong = io.open(path, 'wb')
  if not file then
    return nil, wrong
  end
  file:write(bytes)
  file:close()
  return path
end

--- The setting images: true for image.nvim when it is there, false, or function(path, buffer, line).
local function hand_over(path, view)
  local line = view.region.last
  if type(M.images) == 'function' then
    return M.images(path, view.buffer, line)
  end
  local there, plugin = pcall(require, 'image')
  if M.images and there and plugin.from_file then
    local image = plugin.from_file(path, { buffer = view.buffer, window = vim.fn.bufwinid(view.buffer), x = 0, y = line - 1, inline = true, with_virtual_padding = true })
    if image then
      image:render()
    end
  end
end

local function image(client, data, view, done)
  for mime, extension in pairs(IMAGES) do
    if data[mime] then
      return text.whole(client, data[mime], function(err, base64)
        local path, wrong
        if not err then
          path, wrong = save(text.decode64(base64), extension)
        end
        if not path then
          return done({ 'image: ' .. (wrong or err.message) })
        end
        local fine, problem = pcall(hand_over, path, view)
        done(fine and { 'image: ' .. path } or { 'image: ' .. path, 'image plugin: ' .. tostring(problem) })
      end)
    end
  end
  done(nil)
end

local function plain(client, data, done)
  for _, mime in ipairs(TEXTS) do
    if data[mime] then
      return text.whole(client, data[mime], function(err, value)
        done(err and { err.message } or text.lines(value))
      end)
    end
  end
  done({})
end

--- done(lines) with what results show, in their order.
function M.lines(client, results, view, done)
  local lines, i = {}, 0
  local function more(one)
    vim.list_extend(lines, one or {})
    i = i + 1
    local result = results[i]
    if not result then
      return done(lines)
    end
    for _, dropped in ipairs(result.dropped or {}) do
      table.insert(lines, ('%s is left out: %s'):format(dropped.mime, dropped.reason))
    end
    image(client, result.data, view, function(found)
      if found then
        return more(found)
      end
      plain(client, result.data, more)
    end)
  end
  more()
end

return M
