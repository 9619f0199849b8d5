vim9script
# The output buffer, the quickfix list, and images as files.

const MAX_LINES = 10000 # of the buffer: of more, the end

var buffer = 0

def Buffer(): number
  if buffer == 0 || !bufexists(buffer)
    buffer = bufadd('kern://output')
    bufload(buffer)
    for [option, value] in items({buftype: 'nofile', bufhidden: 'hide', swapfile: false, buflisted: false, undolevels: -1, modeline: false})
      setbufvar(buffer, '&' .. option, value)
    endfor
  endif
  return buffer
enddef

# Opens the window of the output, without going there.
export def Open()
  if bufwinid(Buffer()) < 0
    var here = win_getid()
    execute 'botright sbuffer ' .. Buffer()
    resize 12
    win_gotoid(here)
  endif
enddef

# What a terminal would show: no escape sequences, and of a line that was written over, its last state.
def Plain(line: string): string
  return line->substitute('\e\[[0-?]*[ -/]*[@-~]\|\e\][^\x07\e]*\%(\x07\|\e\\\)\|\e[@-_]', '', 'g')
    ->substitute('\r\+$', '', '')->substitute('^.*\r', '', '')
enddef

# Goes on after what was written last.
export def Append(text: string)
  var to = Buffer()
  var lines = split(text, "\n", true)
  lines[0] = getbufline(to, '$')[0] .. lines[0]
  setbufline(to, '$', Plain(lines[0]))
  appendbufline(to, '$', mapnew(lines[1 :], (_, line) => Plain(line)))
  var count = getbufinfo(to)[0].linecount
  if count > MAX_LINES
    deletebufline(to, 1, count - MAX_LINES)
  endif
  for window in win_findbuf(to)
    win_execute(window, 'normal! G')
  endfor
enddef

# A line of its own.
export def Say(line: string)
  Append((getbufline(Buffer(), '$')[0] == '' ? '' : "\n") .. line .. "\n")
enddef

# A line from whoever sits there, {} when there is none. The prompt is the code's, so it is said who asks.
export def Ask(prompt: string, password: bool): dict<any>
  var words = 'kern: ' .. split(prompt, "\n")->mapnew((_, line) => Plain(line))->join(' ')
  var answer: dict<any> = {}
  try
    answer.line = password ? inputsecret(words) : input(words)
  catch /^Vim:Interrupt$/
  endtry
  redraw
  return answer
enddef

# A new buffer with these lines, in a window.
export def Page(name: string, lines: list<string>)
  execute 'botright new'
  setlocal buftype=nofile bufhidden=wipe noswapfile
  setline(1, lines)
  setlocal nomodifiable
enddef

# Ours replaces only ours.
export def Errors(errors: list<dict<any>>)
  var ours = getqflist({title: 0}).title == 'kern'
  if !empty(errors) || ours
    setqflist([], ours ? 'r' : ' ', {title: 'kern', items: errors})
  endif
enddef

var images = 0

# A file in the cache for an image, which nobody else can read.
export def ImageFile(suffix: string): string
  var home = ($XDG_CACHE_HOME =~ '^/' ? $XDG_CACHE_HOME : $HOME .. '/.cache') .. '/kern/vim'
  mkdir(home, 'p', 0o700)
  images += 1
  var file = printf('%s/%d-%d.%s', home, getpid(), images, suffix)
  writefile([], file)
  return file
enddef
