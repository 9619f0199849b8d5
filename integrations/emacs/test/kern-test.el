;;; kern-test.el --- kern on the real sidecar  -*- lexical-binding: t; -*-

;; Run by tests/editors.sh: emacs -Q --batch.

;;; Code:

(require 'ert)
(require 'kern)

(defconst kern-test-directory (file-name-as-directory (getenv "KERN_TEST_DIR")))
(defconst kern-test-project (concat kern-test-directory "project/"))
(make-directory (concat kern-test-project ".git") t)

(defun kern-test-shown () (with-current-buffer (kern-show--buffer) (buffer-string)))
(defun kern-test-clear () (with-current-buffer (kern-show--buffer) (let ((inhibit-read-only t)) (erase-buffer))))

(defun kern-test-wait (condition what)
  (let ((end (+ (float-time) 60)))
    (while (not (funcall condition))
      (when (> (float-time) end) (error "%s did not come; there is: %s" what (truncate-string-to-width (kern-test-shown) 500)))
      (accept-process-output nil 0.02))))

(defun kern-test-wait-for (regexp)
  (kern-test-wait (lambda () (string-match-p regexp (kern-test-shown))) regexp))

(defun kern-test-ran (command)
  "What the output buffer has when COMMAND has ended."
  (kern-test-clear)
  (funcall command)
  (kern-test-wait (lambda () (null kern--running)) "the end")
  (kern-test-wait-for "^--- .*\n\\(?:.*:[0-9]+: .*\n\\)*\\'")
  (kern-test-shown))

(defmacro kern-test-with (name mode text &rest body)
  "BODY in a buffer of the project's file NAME in MODE with TEXT."
  (declare (indent 3))
  `(let ((file (concat kern-test-project ,name)))
     (write-region ,text nil file nil 'silent)
     (with-current-buffer (find-file-noselect file)
       (funcall ,mode)
       (transient-mark-mode 1)
       (unwind-protect (progn ,@body)
         (set-buffer-modified-p nil)
         (kill-buffer)))))

(defun kern-test-at (line) (goto-char (point-min)) (forward-line (1- line)))
(defun kern-test-marks ()
  "Lines that are marked, with what for."
  (sort (mapcar (lambda (one) (cons (line-number-at-pos (overlay-start one)) (overlay-get one 'help-echo)))
                (seq-filter (lambda (one) (overlay-get one 'kern)) (overlays-in (point-min) (point-max))))
        (lambda (a b) (< (car a) (car b)))))

(ert-deftest kern-cells-share-a-kernel ()
  (kern-test-with "cells.py" #'python-mode "x = 20\n# %% one\nprint('got', x)\nx += 1\n# %% two\nx * 2\n"
    (kern-test-at 1)
    (kern-test-ran #'kern-run-cell)
    (kern-test-at 3)
    (should (string-match-p "\\`--- cells.py, lines 2 to 4\ngot 20\n--- python \\[2\\]: ok, [0-9.]+ s\n\\'" (kern-test-ran #'kern-run-cell)))
    (kern-test-at 5)
    (should (string-match-p "\n42\n---" (kern-test-ran #'kern-run-cell)))
    (should (string-match-p "NameError" (kern-test-ran #'kern-run-in-box)))))

(ert-deftest kern-mistakes-are-marked-at-their-line ()
  (write-region "def half(x):\n    return x / 0\n" nil (concat kern-test-project "helper.py") nil 'silent)
  (kern-test-with "err.py" #'python-mode "# %%\nimport helper\nif True:\n    y = 5; print(y)\n    helper.half(y)\n# %%\nx = = 1\n"
    (kern-test-at 2)
    (let ((shown (kern-test-ran #'kern-run-cell)))
      (should (string-match-p (concat "^err.py:5: ZeroDivisionError: division by zero\n" (regexp-quote kern-test-project) "helper.py:2: ") shown)))
    (kern-test-at 7)
    (kern-test-ran #'kern-run-cell)
    (should (equal (kern-test-marks) '((5 . "ZeroDivisionError: division by zero") (7 . "SyntaxError: invalid syntax"))))
    (kern-test-at 4)
    (should (string-match-p "\n5\n---.*ok" (kern-test-ran #'kern-run-region))) ; an indented line
    (kern-test-at 7)
    (insert " ")
    (delete-char 1)
    (should (equal (mapcar #'car (kern-test-marks)) '(5))))
  (kern-test-with "err.sh" #'sh-mode "echo fine\nno-such-program\n"
    (kern-test-ran #'kern-run-buffer)
    (should (equal (kern-test-marks) '((2 . "no-such-program: command not found"))))))

(ert-deftest kern-interrupt-keeps-the-state-and-restart-does-not ()
  (kern-test-with "slow.py" #'python-mode "kept = 7\nimport time\n# %%\nprint('on', flush=True)\nwhile True: time.sleep(0.01)\n# %%\nkept\n"
    (kern-test-at 1)
    (kern-test-ran #'kern-run-cell)
    (kern-test-at 4)
    (kern-test-clear)
    (kern-run-cell)
    (kern-test-wait-for "^on\n")
    (kern-interrupt)
    (kern-test-wait-for "interrupted, ")
    (kern-test-at 7)
    (should (string-match-p "\n7\n---" (kern-test-ran #'kern-run-cell)))
    (kern-restart)
    (should (string-match-p "NameError" (kern-test-ran #'kern-run-cell)))
    (kern-restart)
    (let ((kern-timeout-s 0.5))
      (set-mark (point-min))
      (kern-test-at 6)
      (activate-mark)
      (should (string-match-p "python box: timeout: " (kern-test-ran #'kern-run-in-box)))
      (should (equal (mapcar #'car (kern-test-marks)) '(1 7)))) ; 7: from above
    (let ((kern-memory-mb -1))
      (kern-restart)
      (should (string-match-p "--- not run: .*memoryMb" (kern-test-ran #'kern-run-in-box))))
    (kern-restart)))

(ert-deftest kern-a-cell-asks ()
  (kern-test-with "ask.py" #'python-mode "import getpass\nprint([input('\\x1b[1mname? '), getpass.getpass('word? '), input()])\n# %%\ninput('?')\n# %%\ninput('late')\n"
    (let (asked)
      (cl-letf (((symbol-function 'read-string) (lambda (prompt) (push prompt asked) (if (equal prompt "kern: name? ") "Ädä" "")))
                ((symbol-function 'read-passwd) (lambda (prompt) (push (list prompt) asked) "geheim")))
        (kern-test-at 1)
        (should (string-match-p "\n\\['Ädä', 'geheim', ''\\]\n---.*ok" (kern-test-ran #'kern-run-cell))))
      (should (equal (reverse asked) '("kern: name? " ("kern: word? ") "kern: "))))
    (kern-test-at 4)
    (cl-letf (((symbol-function 'read-string) (lambda (_) (signal 'quit nil))))
      (should (string-match-p "EOFError" (kern-test-ran #'kern-run-cell))))
    (kern-test-at 6)
    (cl-letf (((symbol-function 'read-string) (lambda (_) (kern-interrupt) (kern-test-wait (lambda () (null kern--running)) "the end") "late")))
      (should (string-match-p "interrupted, " (kern-test-ran #'kern-run-cell))))
    (should (string-match-p "EOFError" (kern-test-ran #'kern-run-in-box)))
    (kern-restart)))

(ert-deftest kern-what-the-code-can-reach ()
  (make-directory (concat kern-test-directory "outside") t)
  (kern-test-with "reach.py" #'python-mode
      (format "import os\ndef can(name):\n    try: open(name, 'w'); return True\n    except OSError: return False\nprint(can('made'), can('.git/hook'), os.path.exists('%soutside'), 'KERN_TEST_DIR' in os.environ, os.getcwd())\n"
              kern-test-directory)
    (kern-restart)
    (should (string-match-p "^True False False False /workspace\n" (kern-test-ran #'kern-run-buffer)))
    (should (file-exists-p (concat kern-test-project "made")))
    (kern-restart)
    (let ((kern-workspace 'readonly)) (should (string-match-p "^False False False False /project\n" (kern-test-ran #'kern-run-buffer))))
    (kern-restart)
    (delete-file (concat kern-test-project "made"))
    (let ((kern-workspace 'private)) (should (string-match-p "^True False False False /workspace\n" (kern-test-ran #'kern-run-buffer))))
    (kern-restart)
    (should-not (file-exists-p (concat kern-test-project "made")))
    (should (seq-every-p (lambda (one) (get one 'risky-local-variable)) '(kern-program kern-workspace kern-protect kern-network)))))

(ert-deftest kern-images-long-output-and-escapes ()
  (kern-test-with "rich.py" #'python-mode "import struct, zlib
def chunk(kind, data): return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
class Png:
    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 1, 1, 8, 0, 0, 0, 0)) + chunk(b'IDAT', zlib.compress(b'\\0\\0')) + chunk(b'IEND', b'')
print('\\x1b[31mr\\u00e9d\\x1b[0m\\n50%\\r100%')
Png()
# %%
for i in range(30000): print('x' * 99)
# %%
import os
class Big: # longer than a line of the protocol
    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 1300, 1000, 8, 2, 0, 0, 0)) + chunk(b'IDAT', zlib.compress(b''.join(b'\\0' + os.urandom(3900) for _ in range(1000)), 0)) + chunk(b'IEND', b'')
Big()
"
    (kern-test-at 1)
    (let ((shown (kern-test-ran #'kern-run-cell)))
      (should (string-match "^réd\n100%\n\\[image\\] \\(.*\\)$" shown))
      (let ((file (match-string 1 shown)))
        (should (equal (with-temp-buffer (set-buffer-multibyte nil) (insert-file-contents-literally file nil 0 4) (buffer-string)) "\211PNG"))))
    (kern-test-at 8)
    (let ((shown (kern-test-ran #'kern-run-cell)))
      (should (<= (length shown) 1000000))
      (should (string-match-p "\n--- python \\[[0-9]+\\]: ok" shown)))
    (kern-test-at 10)
    (let ((shown (kern-test-ran #'kern-run-cell)))
      (should (string-match "\\[image\\] \\(.*\\)$" shown))
      (should (> (file-attribute-size (file-attributes (match-string 1 shown))) 3900000)))
    (with-current-buffer (kern-show--buffer) (kern-restart)) ; of all
    (kern-test-at 6)
    (should (string-match-p "NameError" (kern-test-ran #'kern-run-region)))))

(ert-deftest kern-doctor-and-a-sidecar-that-is-lost-or-wrong ()
  (kern-test-with "last.py" #'python-mode "1 + 1\n"
    (kern-doctor)
    (kern-test-wait (lambda () (get-buffer "*kern doctor*")) "the doctor")
    (should (string-match-p "^Boxes start here\\.$" (with-current-buffer "*kern doctor*" (buffer-string))))
    (kern-test-at 1)
    (kern-test-ran #'kern-run-cell)
    (signal-process kern-sidecar--process 'KILL)
    (kern-test-wait (lambda () (not (kern-sidecar-live-p))) "its end")
    (kern-test-wait (lambda () (null kern-sidecar--process)) "its end")
    (should (string-match-p "\n2\n" (kern-test-ran #'kern-run-cell)))
    (delete-process kern-sidecar--process)
    (kern-test-wait (lambda () (null kern-sidecar--process)) "its end")
    (let ((kern-program "/nonexistent"))
      (should (string-match-p "--- not run: /nonexistent is not the absolute path of a program" (kern-test-ran #'kern-run-cell))))
    (should (equal (hash-table-count kern--sessions) 0)))
  (with-temp-buffer
    (text-mode)
    (should-error (kern-run-cell) :type 'user-error)))

;;; kern-test.el ends here
