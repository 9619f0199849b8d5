vim9script
# Lines of a buffer to what can run.

const MARKER = '^\s*\%(#\|//\)\s*%%'

# The cell around a line of the current buffer: [first, last], from 1.
export def Around(line: number): list<number>
  var first = line
  while first > 1 && getline(first) !~ MARKER
    first -= 1
  endwhile
  var last = line + 1
  while last <= line('$') && getline(last) !~ MARKER
    last += 1
  endwhile
  return [first, last - 1]
enddef

# Takes off the indentation that all lines share, so that lines from inside of a block run.
export def Dedent(lines: list<string>): list<string>
  var shared = ''
  var begun = false
  for line in lines
    if line =~ '\S'
      var indent = matchstr(line, '^[ \t]*')
      if !begun
        shared = indent
        begun = true
      endif
      while stridx(indent, shared) != 0
        shared = shared[: -2]
      endwhile
    endif
  endfor
  return shared == '' ? lines : mapnew(lines, (_, line) => stridx(line, shared) == 0 ? line[strlen(shared) :] : trim(line, " \t", 1))
enddef

# The code of lines first to last of the current buffer, which stands at those lines for every message.
export def Code(first: number, last: number): string
  return repeat("\n", first - 1) .. join(Dedent(getline(first, last)), "\n") .. "\n"
enddef
