;;; prose-mode.el --- Editing and running OpenProse programs -*- lexical-binding: t; -*-

;; License: MIT OR Apache-2.0
;; Package-Requires: ((emacs "28.1") (eglot "1.9"))

;;; Commentary:

;; A major mode for .prose files and its language server for Eglot.
;;   (require 'prose-mode)
;;   (add-hook 'prose-mode-hook #'eglot-ensure)
;; `prose-run-simulated' and `prose-run' run the program in the buffer.

;;; Code:

(require 'eglot)
(require 'jsonrpc)

(defgroup prose nil "OpenProse programs." :group 'languages)

(defcustom prose-server-command '("prose-lsp" "--stdio")
  "Command line of the language server."
  :type '(repeat string))

(defcustom prose-trusted nil
  "Whether programs may be run with real agents.
Simulated runs work all the same."
  :type 'boolean)

(defcustom prose-indent-offset 2
  "Columns by which the body of a block stands in."
  :type 'integer)

(defconst prose--name "[[:alpha:]_]\\(?:[[:alnum:]_]\\|-[[:alnum:]_]\\)*")

(defvar prose-font-lock-keywords
  `((,(concat "^\\s-*\\(agent\\)\\s-+\\(" prose--name "\\)") (1 font-lock-keyword-face) (2 font-lock-type-face))
    (,(concat "^\\s-*\\(block\\)\\s-+\\(" prose--name "\\)") (1 font-lock-keyword-face) (2 font-lock-function-name-face))
    (,(concat "^\\s-*\\(input\\|output\\|let\\|const\\)\\s-+\\(" prose--name "\\)")
     (1 font-lock-keyword-face) (2 font-lock-variable-name-face))
    ;; At the start of a statement a word before = is a name, whatever the word.
    (,(concat "^\\s-*\\(" prose--name "\\)\\s-*=\\(?:[^=]\\|$\\)") (1 font-lock-variable-name-face))
    (,(concat "\\_<\\(session\\|resume\\)\\s-*:\\s-*\\(" prose--name "\\)") (1 font-lock-keyword-face) (2 font-lock-type-face))
    (,(concat "\\_<\\(do\\)\\s-+\\(" prose--name "\\)") (1 font-lock-keyword-face) (2 font-lock-function-name-face))
    ("\\*\\*\\*?\\(?:.\\|\n\\)*?\\*\\*\\*?" (0 font-lock-doc-face t))
    (,(regexp-opt '("session" "resume" "parallel" "do" "loop" "repeat" "for" "until" "while" "in" "as" "if" "elif" "else"
                    "choice" "option" "try" "catch" "finally" "throw" "return" "break" "assert" "use" "import" "output"
                    "and" "or" "not")
                  'symbols)
     . font-lock-keyword-face)
    (,(regexp-opt '("true" "false" "null") 'symbols) . font-lock-constant-face)
    (,(concat "\\(?:^\\s-*\\|[({,]\\s-*\\)\\(" prose--name "\\)\\s-*:") (1 font-lock-variable-name-face)))
  "Colours of `prose-mode'.")

(defvar prose-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?# "<" table)
    (modify-syntax-entry ?\n ">" table)
    (modify-syntax-entry ?\" "\"" table)
    (modify-syntax-entry ?- "_" table)
    (modify-syntax-entry ?_ "_" table)
    (modify-syntax-entry ?' "." table)
    table)
  "Syntax of `prose-mode'.")

(defun prose-indent-line ()
  "Indent below a line that ends in a colon; an else or a catch goes back."
  (interactive)
  (unless (nth 3 (syntax-ppss (line-beginning-position)))
    (let ((column
           (save-excursion
             (beginning-of-line)
             (let ((back (looking-at-p "\\s-*\\(?:elif\\|else\\|catch\\|finally\\)\\_>.*:")))
               (if (not (re-search-backward "^[^\n]*[^ \t\n]" nil t))
                   0
                 (beginning-of-line)
                 (let ((above (current-indentation)))
                   (cond ((looking-at-p "\\s-*[^#\n].*:\\s-*\\(?:#.*\\)?$") (+ above prose-indent-offset))
                         (back (max 0 (- above prose-indent-offset)))
                         (t above))))))))
      (save-excursion (indent-line-to column))
      (when (< (current-column) (current-indentation)) (back-to-indentation)))))

;;;###autoload
(define-derived-mode prose-mode prog-mode "Prose"
  "Major mode for OpenProse programs."
  (setq-local comment-start "# " comment-start-skip "#+\\s-*" comment-end "")
  (setq-local font-lock-defaults '(prose-font-lock-keywords) font-lock-multiline t)
  (setq-local indent-line-function #'prose-indent-line indent-tabs-mode nil)
  (setq-local electric-indent-inhibit t))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.prose\\'" . prose-mode))

(defclass prose-eglot-server (eglot-lsp-server) ()
  :documentation "The OpenProse language server, which tells what a run does.")

(cl-defmethod eglot-initialization-options ((_server prose-eglot-server))
  "Whether the person trusts what is in the workspace."
  (list :trusted (if prose-trusted t :json-false)))

(cl-defmethod eglot-client-capabilities :around ((_server prose-eglot-server))
  "Say that this client shows run events and answers inputs."
  ;; Eglot has an empty :experimental of its own; of two the first would count.
  (plist-put (copy-sequence (cl-call-next-method)) :experimental '(:prose (:runEvent t :input t))))

(cl-defmethod eglot-handle-notification ((_server prose-eglot-server) (_method (eql prose/runEvent)) &key runId event &allow-other-keys)
  "Write EVENT of run RUNID into the log, and tell when it ends."
  (with-current-buffer (get-buffer-create "*prose runs*")
    (save-excursion
      (goto-char (point-max))
      (insert (format "%s %s %s\n" runId (plist-get event :type)
                      (or (plist-get event :label) (plist-get event :status) (plist-get event :name)
                          (plist-get event :message) "")))))
  (when (equal (plist-get event :type) "run_finished")
    (message "prose: run %s %s" runId (plist-get event :status))))

(cl-defmethod eglot-handle-request ((_server prose-eglot-server) (_method (eql prose/input)) &key name prompt options &allow-other-keys)
  "Ask for the input NAME with PROMPT, one of OPTIONS or free text."
  (list :value (condition-case nil
                   (let ((text (format "%s (%s): " prompt name)))
                     (if (seq-empty-p options) (read-string text) (completing-read text (append options nil))))
                 (quit nil))))

(add-to-list 'eglot-server-programs
             `(prose-mode . ,(lambda (&rest _) (cons 'prose-eglot-server prose-server-command))))

(defun prose--run (backend)
  "Run the program in this buffer with BACKEND, or with the configured one when nil."
  (let ((server (or (eglot-current-server) (user-error "No language server; try M-x eglot")))
        (uri (plist-get (eglot--TextDocumentIdentifier) :uri)))
    (eglot--signal-textDocument/didChange)
    ;; Not a request to wait for: the first events of the run come right behind the answer.
    (jsonrpc-async-request
     server :workspace/executeCommand
     (list :command "prose.run" :arguments (vector (append (list :uri uri) (when backend (list :backend backend)))))
     :success-fn (lambda (answer) (message "prose: run %s started; *prose runs* has its log" (plist-get answer :runId)))
     :error-fn (lambda (problem) (message "prose: %s" (plist-get problem :message))))))

(defun prose-run ()
  "Run the program in this buffer."
  (interactive)
  (prose--run nil))

(defun prose-run-simulated ()
  "Run the program in this buffer with made-up answers."
  (interactive)
  (prose--run "simulate"))

(define-key prose-mode-map (kbd "C-c C-c") #'prose-run-simulated)
(define-key prose-mode-map (kbd "C-c C-r") #'prose-run)

(provide 'prose-mode)
;;; prose-mode.el ends here
