;;; kern-show.el --- What kern shows  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; The output buffer, images, and the marks at mistakes.  Everything that is shown is a claim of the code that ran: text.

;;; Code:

(require 'ansi-color)

(defconst kern-show--max-chars 1000000 "Of the output buffer: of more, the end.")

(define-derived-mode kern-show-mode special-mode "kern-output"
  "What ran in boxes has written."
  (setq buffer-undo-list t)
  (buffer-disable-undo))

(defun kern-show--buffer ()
  "The output buffer."
  (let ((buffer (get-buffer-create "*kern*")))
    (with-current-buffer buffer (unless (derived-mode-p 'kern-show-mode) (kern-show-mode)))
    buffer))

(defun kern-show-open ()
  "Show the output buffer, without going there."
  (interactive)
  (display-buffer (kern-show--buffer)))

(defmacro kern-show--at-end (&rest body)
  "BODY at the end of the output buffer; windows that were there follow."
  (declare (indent 0))
  `(with-current-buffer (kern-show--buffer)
     (let ((inhibit-read-only t)
           (following (seq-filter (lambda (window) (= (window-point window) (point-max))) (get-buffer-window-list nil nil t))))
       (save-excursion (goto-char (point-max)) ,@body)
       (when (> (buffer-size) kern-show--max-chars) (delete-region (point-min) (- (point-max) kern-show--max-chars)))
       (dolist (window following) (set-window-point window (point-max))))))

(defconst kern-show--controls "\e\\][^\a\e]*\\(?:\a\\|\e\\\\\\)\\|[\0-\b\v\f\016-\032\034-\037\177]" "What is no text.")

(defun kern-show-text (text &optional mistake)
  "Go on with TEXT, with the face of a MISTAKE or none."
  (kern-show--at-end
    (let ((begin (point)))
      (insert (propertize (replace-regexp-in-string kern-show--controls "" (ansi-color-filter-apply text))
                          'font-lock-face (and mistake 'error)))
      (goto-char begin)
      (beginning-of-line)
      (while (re-search-forward "\r+$" nil t) (replace-match ""))
      (goto-char begin)
      (beginning-of-line)
      (while (re-search-forward "^.*\r" nil t) (replace-match ""))))) ; a line that was written over

(defun kern-show-line (line)
  "Show LINE by itself."
  (kern-show--at-end (unless (bolp) (insert "\n")))
  (kern-show-text (concat line "\n")))

(defvar kern-show--images 0)

(defun kern-show-image (bytes suffix)
  "Show the image of BYTES where this Emacs can.
In any case write it to the cache, with SUFFIX."
  (condition-case error
      (let* ((home (expand-file-name "kern/emacs" (or (getenv "XDG_CACHE_HOME") "~/.cache")))
             (file (expand-file-name (format "%d-%d.%s" (emacs-pid) (cl-incf kern-show--images) suffix) home))
             (coding-system-for-write 'no-conversion))
        (unless bytes (error "It is gone"))
        (with-file-modes #o700 (make-directory home t))
        (with-file-modes #o600 (write-region bytes nil file nil 'silent))
        (when (display-images-p) (kern-show--at-end (insert-image (create-image bytes nil t)) (insert "\n")))
        (kern-show-line (concat "[image] " file)))
    (error (kern-show-line (format "[an image that could not be written: %s]" (error-message-string error))))))

(defun kern-show-ask (prompt password)
  "A line from whoever sits there, a PASSWORD without showing it; nil: none.
PROMPT is the code's, so it is said who asks."
  (let ((words (concat "kern: " (replace-regexp-in-string (concat "\n\\|" kern-show--controls) " " (ansi-color-filter-apply prompt))))
        (enable-recursive-minibuffers t)
        (inhibit-quit nil))
    (condition-case nil
        (if password (read-passwd words) (read-string words))
      (quit nil))))

(defun kern-show-unmark (buffer begin end)
  "Take off the marks in BUFFER from BEGIN to END."
  (with-current-buffer buffer (remove-overlays begin end 'kern t)))

(defun kern-show-mistake (where line text)
  "Name TEXT at LINE of WHERE, a file or a buffer, in the output.
Mark the line in the buffer."
  (let* ((buffer (if (bufferp where) where (find-buffer-visiting where)))
         (name (if (bufferp where) (buffer-name where) where)))
    (kern-show--at-end
      (insert-text-button (format "%s:%d" name line)
                          'action (lambda (_)
                                    (pop-to-buffer (if (buffer-live-p buffer) buffer (find-file-noselect where)))
                                    (goto-char (point-min))
                                    (forward-line (1- line)))
                          'follow-link t)
      (insert (format ": %s\n" text)))
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (save-excursion
          (save-restriction
            (widen)
            (goto-char (point-min))
            (forward-line (1- line))
            (back-to-indentation)
            (let ((mark (make-overlay (point) (line-end-position))))
              (overlay-put mark 'kern t)
              (overlay-put mark 'face '(:underline (:color "red" :style wave)))
              (overlay-put mark 'help-echo text)
              (overlay-put mark 'modification-hooks (list (lambda (overlay &rest _) (delete-overlay overlay)))))))))))

(defun kern-show-page (name text)
  "Show TEXT in a buffer NAME."
  (with-current-buffer (get-buffer-create name)
    (let ((inhibit-read-only t)) (erase-buffer) (insert text) (goto-char (point-min)))
    (special-mode)
    (display-buffer (current-buffer))))

(provide 'kern-show)
;;; kern-show.el ends here
